// Bundles the extension into dist/extension.js. Options: --production (minified, no source map), --watch.
import { build, context } from "esbuild";
import { fileURLToPath } from "node:url";

const production = process.argv.includes("--production");
const options = {
  absWorkingDir: fileURLToPath(new URL("..", import.meta.url)),
  entryPoints: ["src/extension.ts"],
  outfile: "dist/extension.js",
  bundle: true,
  platform: "node",
  format: "cjs",
  target: "node20",
  external: ["vscode"],
  minify: production,
  sourcemap: !production,
  logLevel: "info",
};

if (process.argv.includes("--watch")) {
  await (await context(options)).watch();
} else {
  await build(options);
}
