import { useEffect, useRef, useState, type FormEvent } from "react";
import { signIn } from "../api/client.ts";
import { Button, Command, Problem } from "../parts/parts.tsx";
import { useRequest } from "../parts/use-session.ts";

/** The one-time code in the address, which is taken out of it at once. */
export function takeCode(): string | undefined {
  const code = /^#code=([\w-]+)$/.exec(location.hash)?.[1];
  if (code !== undefined) history.replaceState(null, "", location.pathname + location.search);
  return code;
}

export function SignIn({ code, onDone }: { readonly code: string | undefined; readonly onDone: () => void }) {
  const [token, setToken] = useState("");
  const { run, isBusy, error } = useRequest();
  const begin = async (body: Parameters<typeof signIn>[0]): Promise<void> => {
    if (await run(() => signIn(body))) onDone();
  };
  const isSent = useRef(false);
  useEffect(() => {
    if (code === undefined || isSent.current) return;
    isSent.current = true; // It counts once, and React may run an effect twice.
    void begin({ code });
  }, [code]);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    void begin({ token });
  };
  return (
    <main className="mx-auto flex min-h-full max-w-md flex-col justify-center gap-4 p-6">
      <h1 className="text-xl font-semibold">Holdfast</h1>
      <form onSubmit={submit} className="space-y-3 rounded-lg border border-line bg-panel p-5">
        <label className="block">
          <span className="font-medium">Token</span>
          <input
            type="password"
            autoFocus
            autoComplete="off"
            spellCheck={false}
            value={token}
            onChange={(event) => setToken(event.target.value)}
            className="mt-1 field w-full font-mono"
          />
        </label>
        <Button type="submit" kind="main" isDisabled={isBusy || token.trim() === ""}>
          Sign in
        </Button>
        {error === undefined ? null : <Problem error={error} />}
      </form>
      <p className="text-soft">
        <Command>holdfast ui</Command> prints the address of the page. While a local stack runs, it also names
        the file of the token; without one the address itself signs in.{" "}
        <Command>holdfast token create NAME</Command> makes another token.
      </p>
    </main>
  );
}
