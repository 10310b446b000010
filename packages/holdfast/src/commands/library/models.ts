import type { Command } from "@holdfast/terminal/frame/command";
import { showModels } from "../../doctor/show-models.ts";

export const models: Command = {
  name: "models",
  description:
    "An agent file names a model by provider/model or by an alias of this table (docs/models.md). Prices are of the table that comes with " +
    "Holdfast, in dollars per million tokens. A provider can be used when its key is set, here or as a secret. An Ollama of this machine " +
    "is asked for its models; it is used where no provider has a key. Without --online no server on another machine is asked.",
  options: {
    online: { help: "also ask providers on other machines, with their keys" },
  },
  examples: [
    ["models", "the aliases, and what has a key here"],
    ["models --online", "and whether the keys are accepted"],
  ],

  async run(args, io) {
    return showModels(args, io);
  },
};
