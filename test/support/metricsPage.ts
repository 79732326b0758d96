// A process's /metrics as its operator reads it: with the token that every process of a test is started with.

/** The setting METRICS_TOKEN of the processes of tests. */
export const METRICS_TOKEN = "the operator of a test";

/** What an operator sends. */
export const AUTHORIZED = { authorization: `Bearer ${METRICS_TOKEN}` };

/** The text of the page at `url`. Throws for anything but 200. */
export async function metricsOf(url: string): Promise<string> {
	const answer = await fetch(`${url}/metrics`, { headers: AUTHORIZED });
	if (answer.status !== 200) throw new Error(`/metrics answers ${answer.status}`);
	return answer.text();
}
