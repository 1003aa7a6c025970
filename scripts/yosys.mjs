// SPDX-License-Identifier: Apache-2.0
// Runs npm's @yowasp/yosys on files given by name:
// yosys.mjs MODULE_DIR OUT_DIR SCRIPT FILE...
// Exits with 1 when Yosys fails. Files appear to the script under their base name;
// those that it writes land in OUT_DIR.
import { readFileSync, writeFileSync } from "node:fs";
import { basename } from "node:path";
import { pathToFileURL } from "node:url";

const [moduleDir, outDir, script, ...paths] = process.argv.slice(2);
const { runYosys, Exit } =
    await import(pathToFileURL(`${moduleDir}/gen/bundle.js`).href);
const files = Object.fromEntries(
    paths.map((path) => [basename(path), readFileSync(path, "utf8")]));
const print = (stream) => (bytes) => {
  if (bytes !== null) stream.write(bytes);
};
try {
  const tree = await runYosys(
      ["-q", "-p", script], files,
      { stdout: print(process.stdout), stderr: print(process.stderr) });
  for (const [name, content] of Object.entries(tree)) {
    if (!(name in files)) {
      writeFileSync(`${outDir}/${name}`, content);
    }
  }
} catch (error) {
  if (!(error instanceof Exit)) throw error;
  process.exitCode = 1;
}
