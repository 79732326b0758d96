// A process's own folder in DATA_DIR: the setting's value and the process's name come in, a folder that can be
// written goes out, or a refusal that names the setting.

import { accessSync, constants, mkdirSync } from "node:fs";
import { join } from "node:path";

/** DATA_DIR is of no use. */
export class DataFolderError extends Error {
	readonly code = "DATA_FOLDER";
	constructor() {
		super("DATA_DIR can't be made or written: expected a folder, for example DATA_DIR=./data");
		this.name = "DataFolderError";
	}
}

/** `dataDir/process`, made where absent, its owner's alone. Throws {@link DataFolderError}. */
export function dataFolder(dataDir: string, process: string): string {
	const folder = join(dataDir, process);
	try {
		mkdirSync(folder, { recursive: true, mode: 0o700 });
		accessSync(folder, constants.W_OK);
	} catch {
		throw new DataFolderError();
	}
	return folder;
}
