// `@holdfast/mcp/client`: the connection to one MCP server, for a package that loads it only when it
// is needed.

export { McpConnection } from "./connection.ts";
export { StdioTransport } from "./stdio-transport.ts";
