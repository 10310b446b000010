// Plants a mutant in files that Node itself loads: other packages, and the programs that tests start.

import { registerHooks } from "node:module";

const { file, find, replace } = JSON.parse(process.env["HOLDFAST_MUTANT"] ?? "{}") as Record<string, string>;

registerHooks({
  load(url, context, nextLoad) {
    const loaded = nextLoad(url, context);
    if (file === undefined || !url.endsWith(file)) return loaded;
    const source =
      typeof loaded.source === "string"
        ? loaded.source
        : new TextDecoder().decode(loaded.source ?? new Uint8Array());
    if (!source.includes(find!))
      throw new Error(`the text of the mutant is no longer in the source: ${file}`);
    return { ...loaded, source: source.replace(find!, () => replace!) };
  },
});
