import { refuse } from "@holdfast/terminal/frame/arguments";
import type { Command } from "@holdfast/terminal/frame/command";
import {
  completionScript,
  SHELLS,
  type CompletedCommand,
} from "@holdfast/terminal/frame/syntax/completion-script";

/** @param load all commands. The table of commands gives it, because that table has this command, too. */
export const completion = (load: () => Promise<readonly CompletedCommand[]>): Command => ({
  name: "completion",
  takes: [{ name: SHELLS.join("|"), is: "the shell", ifMissing: `give one of ${SHELLS.join(", ")}` }],
  description:
    "The script completes commands, their actions, their options and the files that options name. It holds all of that, so a press of Tab " +
    "starts no process; write it again after an update of Holdfast.",
  options: {},
  examples: [
    [
      "completion bash > ~/.local/share/bash-completion/completions/holdfast",
      "for bash, from the next shell on",
    ],
    ["completion zsh > ~/.zfunc/_holdfast", "for zsh, where fpath has ~/.zfunc before compinit"],
    ["completion fish > ~/.config/fish/completions/holdfast.fish", "for fish"],
  ],

  async run(args, io) {
    const [given = ""] = args.positionals;
    const shell = SHELLS.find((one) => one === given);
    if (shell === undefined)
      throw refuse(`there is no completion for ${given}`, args.usage, {
        got: given,
        fix: `give one of ${SHELLS.join(", ")}`,
      });
    const script = completionScript(shell, await load());
    io.result({ shell, script }, script.trimEnd());
    return 0;
  },
});
