"""A program that holds a runner: it starts one, asks a person in its own window, and survives the runner's death.

Only the standard library of Python is used. Usage: host.py SESSION NAME, with the command in HOLDFAST (default: npx holdfast).
"""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

AGENT = Path(__file__).parent / "greeter.ts"
COMMAND = shlex.split(os.environ.get("HOLDFAST", "npx holdfast"))


class Runner:
    """One process of the runner. Its messages are read in order; answers to requests are found by their id."""

    def __init__(self):
        command = [*COMMAND, "runner", "--ipc", "--agents", str(AGENT)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8")
        self.requests = 0
        self.send("hello", protocol=1, host="example 17")

    def send(self, type, **fields):
        self.requests += 1
        print(json.dumps({"type": type, "id": str(self.requests), **fields}), file=self.process.stdin, flush=True)

    def messages(self):
        for line in self.process.stdout:
            yield json.loads(line)


def hold(session, name, known):
    """Holds a runner until the session has ended. Returns the session, or None when the runner died."""
    runner = Runner()
    try:
        # The id is ours, so this start is safe to repeat: it finds the session if there is one.
        runner.send("start", sessionId=session, agent="greeter", input={"name": name})
        runner.send("subscribe", sessionId=session, afterSeq=known["seq"])
        for message in runner.messages():
            match message["type"]:
                case "error":
                    raise SystemExit(f"{message['error']['message']}: {message['error'].get('fix', '')}")
                case "event":
                    known["seq"] = message["event"]["seq"]
                    print(known["seq"], message["event"]["type"], flush=True)
                case "session" if message["session"]["status"] == "input_required":
                    question = message["session"]["waits"][0]
                    answer = input(question["prompt"] + " [y/n] ")
                    runner.send("answer", sessionId=session, question=question["id"], answer={"approved": answer == "y"})
                case "session" if message["session"]["status"] in ("completed", "failed", "cancelled"):
                    runner.send("stop")
                    return message["session"]
    except BrokenPipeError:
        pass  # The runner died while we wrote.
    finally:
        runner.process.stdin.close()
        runner.process.wait()
    return None


session, name = sys.argv[1:3]
known = {"seq": -1}
while (ended := hold(session, name, known)) is None:
    print("the runner died; starting it again", flush=True)
print(ended["status"], ended.get("output", ended.get("error")))
