// Connections to MCP servers. The SDK of the protocol is loaded at the first connection, and by
// `@holdfast/mcp/client` and `@holdfast/mcp/sign-in`.

export type { CallToolResult, InputRequests } from "@modelcontextprotocol/client";
export { describeServer, type DescribedServer } from "./describe-server.ts";
export { McpServers, type OpenServer, type OwnValues } from "./mcp-servers.ts";
export type { McpConnection } from "./client/connection.ts";
export { signInKey, type SignInStore } from "./sign-in/sign-in-record.ts";
export type { McpReference, McpServer } from "./settings/mcp-server.ts";
export { fillPlaceholders } from "./settings/placeholders.ts";
export {
  paramValues,
  serverPlaceholderProblem,
  serverTexts,
  variablesOfServer,
} from "./settings/server-texts.ts";
export {
  CallLostError,
  saysSignIn,
  ServerFailedError,
  signInAdvice,
  SignInNeededError,
} from "./protocol/call-errors.ts";
export { MCP_LIMITS } from "./protocol/limits.ts";
export { questionHash } from "./protocol/open-call.ts";
export { isReadImage, resultMedia, type Media } from "./protocol/result-media.ts";
export { resultText } from "./protocol/result-text.ts";
export {
  contentOf,
  fieldsOf,
  fieldsText,
  questionsOf,
  type ServerAnswer,
  type ServerQuestion,
} from "./protocol/server-questions.ts";
export { pollMsOf, type ServerTask } from "./protocol/server-tasks.ts";
export { readTools, type McpToolFact } from "./protocol/server-tools.ts";
