// The coding agent, for any repository: `npx holdfast run examples/01-coding-agent/agent.ts --input '{"repo": "."}'`
//
// The repository is in the input, the model in the environment: another process that resumes the session finds both again.

import { createCodingAgent, workspacesByRoot } from "@holdfast/agents";
import { chooseModelAgain, SCRIPT_NOTICE, SCRIPT_REMINDER } from "./model.ts";

/** Whether somebody has said already that the model is a script. */
export const notice = { isShown: false };

export default createCodingAgent({
  workspace: workspacesByRoot(),
  model: (wanted) => {
    const model = chooseModelAgain(process.env, wanted);
    if (model.isScripted && !notice.isShown)
      process.stderr.write(`${wanted === undefined ? SCRIPT_NOTICE : SCRIPT_REMINDER}\n`);
    notice.isShown = true;
    return model;
  },
});
