// The folders in which agents work: files inside one folder, the sandboxes around its commands, and worktrees
// of Git.

export {
  hiddenPlaces,
  nestedGuards,
  programFolders,
  visiblePlaces,
} from "./sandboxes/bubblewrap-commands.ts";
export { bubblewrapSandbox } from "./sandboxes/bubblewrap-sandbox.ts";
export { FILESYSTEM } from "./sandboxes/filesystem-sandbox.ts";
export {
  type SandboxBackend,
  type SandboxCheck,
  type SandboxOptions,
  type SandboxPlace,
  type SandboxProgram,
} from "./sandboxes/sandbox-backend.ts";
export { ownSandbox, ownSandboxes, Sandboxes, type OwnSandboxesOptions } from "./sandboxes/sandboxes.ts";
export { seatbeltProfile } from "./sandboxes/seatbelt/seatbelt-profile.ts";
export { SEATBELT, seatbeltSandbox } from "./sandboxes/seatbelt/seatbelt-sandbox.ts";
export { checkedOutBranch } from "./git/checked-out-branch.ts";

export { type FileSnapshot, type WorkspaceCapabilities } from "./workspace/capabilities.ts";
export { type Command, type ExecuteOptions, type Execution, type ExecutionEnd } from "./workspace/execute.ts";
export { SHALLOW, withoutPrograms, PLAIN_DIFF } from "./workspace/git-options.ts";
export { type ProtectedPath } from "./granting-places.ts";
export { type GuardedPlaces, guardPlaces } from "./workspace/guarded-places.ts";
export { hostEnvironment } from "./workspace/host-environment.ts";
export {
  GLOB_SIGNS,
  globMatcher,
  globProblem,
  isOutside,
  normalizeGlob,
  normalizePath,
  pathFilter,
} from "./workspace/paths/path-globs.ts";
export { type PathMask } from "./workspace/paths/path-mask.ts";
export { executableAt, pathOutside, programOnPath } from "./workspace/program-on-path.ts";
export { type WorkspaceLimits } from "./workspace/limits.ts";
export {
  openWorkspace,
  type Workspace,
  type WorkspaceOptions,
  type WriteOptions,
} from "./workspace/workspace.ts";
export { EmptyFolders } from "./worktrees/empty-folder.ts";
export { gitIn, ownGuard } from "./worktrees/worktree-git.ts";
export { type ListedWorktree, type Worktree, Worktrees, type WorktreeWork } from "./worktrees/worktrees.ts";
export { hostCommands, type CommandRunner } from "./workspace/command-runner.ts";
export { git, OWN_FILES, parseStatus, type GitChange, type GitOptions } from "./git/git.ts";
export { stageChanges } from "./git/stage.ts";
export {
  type FileContent,
  type FileListing,
  type ListedEntry,
  type WrittenFile,
} from "./workspace/contained-files.ts";
export { type SearchMatch, type SearchQuery, type SearchResult } from "./workspace/search.ts";
