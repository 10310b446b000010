// `node model/serve.ts`: the scripted model as a server of this machine. It stays until Ctrl-C.

import { startScriptedModelServer } from "holdfast/testing";
import { script } from "./script.ts";

const { url } = await startScriptedModelServer({ script });
console.log(`export HOLDFAST_SCRIPTED_MODEL_URL=${url}`);
