// The page: its screens by their addresses, or the sign-in.

import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import {
  createRootRoute,
  createRoute,
  createRouter,
  redirect,
  RouterProvider,
  useNavigate,
} from "@tanstack/react-router";
import { lazy, StrictMode, Suspense, useEffect, useState, type ReactNode } from "react";
import { createRoot } from "react-dom/client";
import { ApiError, call, NoAnswerError, onSignedOut } from "./api/client.ts";
import { ServerChanges } from "./api/server-changes.ts";
import { InboxReader } from "./api/open-items.ts";
import type { Outbox } from "./api/outbox.ts";
import type { About } from "./api/types.ts";
import { Problem, ScreenBody } from "./parts/parts.tsx";
import { reloadForMissingFiles } from "./api/missing-file.ts";
import { Shell } from "./parts/shell.tsx";
import { readTextSearch } from "./parts/text-search.ts";
import { ChangesContext } from "./parts/use-changes.ts";
import { OutboxContext } from "./parts/use-session.ts";
import { HomeScreen } from "./screens/home/home.tsx";
import { InboxScreen, readInboxSearch } from "./screens/inbox/inbox.tsx";
import { InboxContext, useInbox } from "./screens/inbox/use-inbox.ts";
import { useNotifications } from "./screens/inbox/notifications.tsx";
import { AgentsScreen } from "./screens/agents/agents.tsx";
import { readStartSearch, StartScreen } from "./screens/agents/start.tsx";
import { readSessionSearch, SessionScreen } from "./screens/session.tsx";
import { readSessionsSearch } from "./screens/sessions/sessions-search.ts";
import { Sessions } from "./screens/sessions/sessions.tsx";
import { SignIn, takeCode } from "./screens/sign-in.tsx";
// oxlint-disable-next-line import/no-unassigned-import -- styles have no name.
import "./styles.css";

function Root() {
  const { data } = useInbox();
  const navigate = useNavigate();
  useNotifications(data, (item) => void navigate({ to: "/inbox", search: { item } }));
  const count = data?.items.length;
  useEffect(() => {
    document.title = count === undefined || count === 0 ? "Holdfast" : `(${count}) Holdfast`;
  }, [count]);
  return <Shell inboxCount={count} />;
}

function InboxRoute() {
  const { data, error } = useInbox();
  return <InboxScreen inbox={data} error={error ?? undefined} />;
}

/** A screen that is loaded when it is looked at. The router's own loader reloads the page when the server is away. */
function lazyScreen(load: () => Promise<() => ReactNode>): () => ReactNode {
  const Screen = lazy(async () => ({ default: await load() }));
  return () => (
    <Suspense fallback={<p className="p-6 text-soft">Loading…</p>}>
      <Screen />
    </Suspense>
  );
}

const root = createRootRoute({
  component: Root,
  notFoundComponent: () => (
    <ScreenBody title="There is no such screen">
      <p>Choose one of the screens of this page.</p>
    </ScreenBody>
  ),
  errorComponent: ({ error }) => (
    <main className="h-full">
      <ScreenBody title="This screen cannot be shown">
        <Problem error={error} />
      </ScreenBody>
    </main>
  ),
});
const router = createRouter({
  basepath: "/ui",
  routeTree: root.addChildren([
    createRoute({
      getParentRoute: () => root,
      path: "/",
      component: HomeScreen,
      validateSearch: readInboxSearch,
      // Links to an item were made when the inbox was the first screen.
      beforeLoad: ({ search }) => {
        if (search.item !== undefined) redirect({ to: "/inbox", search, replace: true, throw: true });
      },
    }),
    createRoute({
      getParentRoute: () => root,
      path: "/inbox",
      component: InboxRoute,
      validateSearch: readInboxSearch,
    }),
    createRoute({
      getParentRoute: () => root,
      path: "/sessions",
      component: Sessions,
      validateSearch: readSessionsSearch,
    }),
    createRoute({
      getParentRoute: () => root,
      path: "/start",
      component: StartScreen,
      validateSearch: readStartSearch,
    }),
    createRoute({ getParentRoute: () => root, path: "/agents", component: AgentsScreen }),
    createRoute({
      getParentRoute: () => root,
      path: "/costs",
      component: lazyScreen(async () => (await import("./screens/system/costs.tsx")).CostsScreen),
    }),
    createRoute({
      getParentRoute: () => root,
      path: "/fleet",
      component: lazyScreen(async () => (await import("./screens/system/fleet.tsx")).FleetScreen),
    }),
    createRoute({
      getParentRoute: () => root,
      path: "/audit",
      component: lazyScreen(async () => (await import("./screens/system/audit.tsx")).AuditScreen),
      validateSearch: readTextSearch,
    }),
    createRoute({
      getParentRoute: () => root,
      path: "/schedules",
      component: lazyScreen(async () => (await import("./screens/system/schedule-list.tsx")).SchedulesScreen),
    }),
    createRoute({
      getParentRoute: () => root,
      path: "/sessions/$id",
      component: SessionScreen,
      validateSearch: readSessionSearch,
    }),
  ]),
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}

/** How often the page reads again while the server does not answer. */
const AWAY_MS = 3_000;

const queries = new QueryClient({
  defaultOptions: {
    queries: {
      retry: (count, error) => !(error instanceof ApiError) && count < 2,
      refetchInterval: ({ state }) => (state.error instanceof NoAnswerError ? AWAY_MS : false),
      // The server is often this machine, which is there without a network.
      networkMode: "always",
    },
    mutations: { networkMode: "always" },
  },
});

/** All screens, told of changes as long as they are signed in. */
function Screens() {
  const [changes, setChanges] = useState<ServerChanges>();
  const [inbox] = useState(() => new InboxReader());
  const [outboxes] = useState(() => new Map<string, Outbox>());
  useEffect(() => {
    const next = new ServerChanges();
    setChanges(next);
    next.onChange({
      read: () =>
        queries.refetchQueries({ type: "active", predicate: ({ meta }) => meta?.["isLive"] === true }),
    });
    next.onChange({
      read: () => queries.refetchQueries({ type: "active", queryKey: ["inbox"] }),
      show: (sessions) => !sessions.some((session) => inbox.concerns(session)),
    });
    next.begin();
    return () => next.end();
  }, [inbox]);
  return (
    <ChangesContext value={changes}>
      <InboxContext value={inbox}>
        <OutboxContext value={outboxes}>
          <RouterProvider router={router} />
        </OutboxContext>
      </InboxContext>
    </ChangesContext>
  );
}

reloadForMissingFiles();
const firstCode = takeCode();

function App() {
  const [isSignedIn, setSignedIn] = useState<boolean | undefined>(
    firstCode === undefined ? undefined : false,
  );
  const [code, setCode] = useState(firstCode);
  const [error, setError] = useState<unknown>();
  useEffect(() => onSignedOut(() => setSignedIn(false)), []);
  useEffect(() => {
    if (isSignedIn !== undefined) return;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const look = (): void =>
      void call<About>("GET", "/ui/about").then(
        () => {
          setError(undefined);
          setSignedIn(true);
        },
        (thrown: unknown) => {
          if (!(thrown instanceof ApiError) || thrown.status !== 401) setError(thrown);
          if (thrown instanceof NoAnswerError) timer = setTimeout(look, AWAY_MS);
        },
      );
    look();
    return () => clearTimeout(timer);
  }, [isSignedIn]);
  if (error !== undefined)
    return (
      <div className="p-6">
        <Problem error={error} />
      </div>
    );
  if (isSignedIn === undefined) return null;
  if (!isSignedIn)
    return (
      <SignIn
        code={code}
        onDone={() => {
          setCode(undefined);
          queries.clear();
          setSignedIn(true);
        }}
      />
    );
  return <Screens />;
}

createRoot(document.getElementById("root")!).render(
  <StrictMode>
    <QueryClientProvider client={queries}>
      <App />
    </QueryClientProvider>
  </StrictMode>,
);
