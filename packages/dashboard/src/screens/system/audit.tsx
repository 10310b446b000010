// The audit, newest first, and the names of secrets.
//
//   - No index finds rows of the audit by their texts. A search reads page by page, and the screen says how
//     far it has read.
//   - No value of a secret reaches the page.

import { answerText, viewQuestion, visibleText, type AskedQuestion } from "@holdfast/proto/view";
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useRef } from "react";
import { ApiError, call } from "../../api/client.ts";
import type { AuditPage, AuditRow, NamedSecret } from "../../api/types.ts";
import { Chip } from "../../design/surfaces.tsx";
import { LongText } from "../../parts/long-text.tsx";
import { Button, Command, Empty, Problem, ScreenBody, useNow } from "../../parts/parts.tsx";
import { useKeys } from "../../parts/shell.tsx";
import { readTextSearch } from "../../parts/text-search.ts";
import { ago, brief, dateText, json, shown } from "../../parts/text.ts";
import { useAbout } from "../../parts/use-session.ts";

const PAGE = 200;
const REFRESH_MS = 5_000;

export function AuditScreen() {
  const about = useAbout();
  if (about === undefined) return null;
  if (about.kind !== "admin")
    return (
      <ScreenBody title="Audit and secrets">
        <Empty title="Only admins see the audit">
          <p>
            Each change that you make has a row there. An admin reads it here, or with{" "}
            <Command>GET /v1/audit</Command>.
          </p>
        </Empty>
      </ScreenBody>
    );
  return (
    <ScreenBody title="Audit and secrets">
      <Rows />
      <Secrets isLocal={about.isLocal} />
    </ScreenBody>
  );
}

function Rows() {
  const { text = "" } = useSearch({ from: "/audit" });
  const navigate = useNavigate({ from: "/audit" });
  const searchBox = useRef<HTMLInputElement>(null);
  useKeys({ "/": () => searchBox.current?.focus() });
  const { data, error, fetchNextPage, hasNextPage, isFetchingNextPage, refetch } = useInfiniteQuery({
    queryKey: ["audit"],
    queryFn: ({ pageParam }) => call<AuditPage>("GET", `/v1/audit?before=${pageParam}&limit=${PAGE}`),
    initialPageParam: 0,
    getNextPageParam: ({ nextBefore }) => nextBefore,
    // Further pages are not read again and again.
    refetchInterval: ({ state }) =>
      state.error === null && (state.data?.pages.length ?? 0) > 1 ? false : REFRESH_MS,
    gcTime: 0,
  });
  if (data === undefined)
    return error === null ? <p className="text-soft">Reading the audit…</p> : <Problem error={error} />;
  const rows = data.pages.flatMap((page) => page.rows);
  const found = text === "" ? rows : rows.filter((row) => hasText(row, text));
  const read = `${rows.length.toLocaleString()} ${rows.length === 1 ? "row" : "rows"} read`;
  return (
    <section aria-label="Audit">
      <h2 className="mb-2 font-semibold">Audit</h2>
      <div role="search" className="mb-2 flex flex-wrap items-center gap-2">
        <input
          ref={searchBox}
          type="search"
          aria-label="Search in the rows that are read"
          placeholder="Who, what, on which object ( / )"
          value={text}
          onChange={(event) =>
            void navigate({ search: readTextSearch({ text: event.target.value }), replace: true })
          }
          onKeyDown={(event) => {
            if (event.key === "Escape") event.currentTarget.blur();
          }}
          className="field min-w-40 flex-1"
        />
        <output className="text-soft max-sm:basis-full">
          {text === "" ? "" : `${found.length.toLocaleString()} of `}
          {read}
          {hasNextPage ? ", and there are older ones" : ", which is all"}
        </output>
        {data.pages.length > 1 ? <Button onClick={() => void refetch()}>Read again</Button> : null}
      </div>
      {error === null ? null : <Problem error={error} />}
      {found.length === 0 ? (
        <p className="py-4 text-soft">
          {rows.length === 0
            ? "Nothing is recorded yet. Each change that a person or a program asks for gets a row: who, what, on which object, and its outcome."
            : "No row that was read has this text."}
        </p>
      ) : (
        <ul aria-label="Rows" className="rounded-lg border border-line bg-panel px-4 shadow-sm">
          {found.map((row) => (
            <Row key={row.seq} row={row} />
          ))}
        </ul>
      )}
      {hasNextPage ? (
        <div className="mt-3">
          <Button isDisabled={isFetchingNextPage} onClick={() => void fetchNextPage()}>
            {text === "" ? "Older rows" : "Search in older rows"}
          </Button>
        </div>
      ) : null}
    </section>
  );
}

function Row({ row }: { readonly row: AuditRow }) {
  const { at, actor, action, object, outcome, requestId } = row;
  const now = useNow(30_000);
  const answer = readAnswer(row);
  const [, sessionId] = /^session:(.+)$/.exec(object) ?? [];
  return (
    <li className="flex flex-wrap items-baseline gap-x-3 border-b border-line py-1.5 [contain-intrinsic-size:auto_2.2rem] [content-visibility:auto] last:border-b-0">
      <span className="w-48 shrink-0 text-soft max-sm:w-auto" title={ago(at, now)}>
        {dateText(at)}
      </span>
      <span className="font-medium break-all">{brief(actor, 120)}</span>
      <Chip>{brief(action, 120)}</Chip>
      {sessionId === undefined ? (
        <span className="break-all text-soft">{brief(object, 200)}</span>
      ) : (
        <Link
          to="/sessions/$id"
          params={{ id: sessionId }}
          className="inline-block min-h-6 font-mono text-xs leading-6 break-all text-accent underline"
        >
          {brief(sessionId, 120)}
        </Link>
      )}
      <span className="ml-auto text-soft" title={requestId === undefined ? "" : `request ${requestId}`}>
        {brief(outcome, 80)}
      </span>
      {answer === undefined ? null : <Answered {...answer} />}
    </li>
  );
}

/** The question of an answer, as its session asked it, and the answer. Without what looks like a secret. */
function Answered({ question, answer }: RecordedAnswer) {
  const { prompt, tool, folder, action, details } = viewQuestion(question, undefined);
  const more = action ?? (details === undefined ? "" : json(details));
  return (
    <details className="min-w-0 basis-full">
      <summary className="min-h-6 truncate text-soft">
        answered <span className="font-medium text-text">{brief(answerText(answer), 120)}</span> to{" "}
        {brief(visibleText(prompt), 160)}
        {action === undefined ? null : (
          <span className="font-mono text-text"> {brief(visibleText(action), 160)}</span>
        )}
      </summary>
      <div className="mt-1 rounded-md bg-raised p-3">
        {tool === undefined ? null : (
          <p className="text-soft">
            {shown(tool)}
            {folder === undefined ? "" : ` in ${shown(folder)}`}
          </p>
        )}
        <LongText text={visibleText(more === "" ? prompt : more)} />
        <LongText text={`answer: ${answerText(answer)}`} />
      </div>
    </details>
  );
}

interface RecordedAnswer {
  readonly question: AskedQuestion;
  readonly answer?: unknown;
}

function readAnswer({ details }: AuditRow): RecordedAnswer | undefined {
  const found = details === undefined ? undefined : (JSON.parse(details) as Partial<RecordedAnswer>);
  return found?.question === undefined ? undefined : (found as RecordedAnswer);
}

function Secrets({ isLocal }: { readonly isLocal: boolean }) {
  const { data, error } = useQuery({
    queryKey: ["secrets"],
    queryFn: () => call<{ readonly secrets: readonly NamedSecret[] }>("GET", "/ui/secrets"),
    enabled: isLocal,
  });
  const secrets = data?.secrets ?? [];
  const now = useNow(30_000);
  return (
    <section aria-label="Secrets">
      <h2 className="mb-2 font-semibold">Secrets</h2>
      {isLocal ? (
        secrets.length === 0 && data !== undefined ? (
          <p className="text-soft">
            No secret is stored. <Command>holdfast secret set NAME</Command> asks for a value and stores it in
            the keychain or an encrypted file.
          </p>
        ) : (
          <ul className="rounded-lg border border-line bg-panel px-3">
            {secrets.map(({ name, place, used, usedAt }) => (
              <li
                key={`${name} ${place}`}
                className="flex flex-wrap gap-x-3 border-b border-line py-1.5 last:border-b-0"
              >
                <span className="font-mono break-all">{shown(name)}</span>
                <span className="text-soft">{place === "file" ? "encrypted file" : "keychain"}</span>
                {used ? (
                  <span className="ml-auto text-soft" title={usedAt === undefined ? "" : dateText(usedAt)}>
                    {usedAt === undefined ? "no use is known" : `last used ${ago(usedAt, now)}`}
                  </span>
                ) : null}
                {used ? null : <span className="text-warn">not used: another place has it too</span>}
              </li>
            ))}
          </ul>
        )
      ) : (
        <p className="text-soft">
          A coordinator has no secrets. Each runner takes them from its own machine:{" "}
          <Command>holdfast secret list</Command> shows their names there.
        </p>
      )}
      {error === null || (error instanceof ApiError && error.status === 404) ? null : (
        <Problem error={error} />
      )}
      <p className="mt-1 text-soft">Values are never shown.</p>
    </section>
  );
}

function hasText(row: AuditRow, text: string): boolean {
  const { actor, action, object, outcome, requestId = "", details = "" } = row;
  return [actor, action, object, outcome, requestId, details].some((each) =>
    each.toLowerCase().includes(text.toLowerCase()),
  );
}
