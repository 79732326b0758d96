// Tables of the pages for figures.

/** @param {string} tag @param {string | Node} content */
export function made(tag, content) {
	const node = document.createElement(tag);
	node.append(content);
	return node;
}

/**
 * A table whose first column names the rows. `rows`: for each its cells, as text or nodes. In a box
 * of the class "stacked" a phone shows each row as a list, with the columns' names.
 */
export function tableOf(columns, rows) {
	const head = document.createElement("thead");
	head.append(rowOf(columns.map((name) => (name === "" ? made("td", "") : scoped("col", name)))));
	const body = document.createElement("tbody");
	body.append(
		...rows.map(([name, ...cells]) =>
			rowOf([scoped("row", name), ...cells.map((content, i) => named(columns[i + 1], content))]),
		),
	);
	const table = document.createElement("table");
	table.append(head, body);
	return table;
}

const SVG = "http://www.w3.org/2000/svg";

/** An element of a picture. */
export function drawn(tag, attributes) {
	const node = document.createElementNS(SVG, tag);
	for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, String(value));
	return node;
}

/** A bar for a percentage, beside its text. */
export function barOf(share) {
	const attributes = {
		class: "share-bar",
		"aria-hidden": "true",
		viewBox: "0 0 100 1",
		preserveAspectRatio: "none",
	};
	const bar = drawn("svg", attributes);
	bar.append(drawn("rect", { x: 0, y: 0, width: share, height: 1, class: "share" }));
	return bar;
}

/** Lets the keyboard scroll a box, which has a name then. */
export function scrolls(box, name) {
	box.tabIndex = 0;
	box.setAttribute("role", "region");
	box.setAttribute("aria-label", name);
}

function scoped(scope, content) {
	const cell = made("th", content);
	cell.scope = scope;
	return cell;
}

function named(name, content) {
	const cell = made("td", content);
	cell.dataset.name = name;
	return cell;
}

function rowOf(cells) {
	const row = document.createElement("tr");
	row.append(...cells);
	return row;
}
