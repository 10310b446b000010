// `McpServer`: an MCP server, as every format of settings is read into it.

/** An MCP server: a program that speaks over its standard input and output, or an address. */
export type McpServer = McpServerAddress & {
  /** The tools that are offered, all by default. */
  readonly enabledTools?: readonly string[];
};

/** A server of the project's or the user's registry, with headers of this agent. */
export interface McpReference {
  readonly ref: string;
  /** Headers by name. Each replaces the server's own header of that name. */
  readonly config: Readonly<Record<string, string>>;
}

type McpServerAddress =
  | {
      readonly type: "stdio";
      readonly command: string;
      readonly args: readonly string[];
      readonly env: Readonly<Record<string, string>>;
      /** The absolute folder in which it starts, that of a plugin. Without it the folder of the session. */
      readonly cwd?: string;
      /** A folder of its own that is made before it starts. */
      readonly dataFolder?: string;
    }
  | {
      readonly type: "http";
      readonly url: string;
      readonly headers: Readonly<Record<string, string>>;
      /** The names of headers whose values a registry says are secrets, so that none is written out. */
      readonly sensitive?: readonly string[];
      /** The user's own settings name it, so its address may be a private one. No file of a project can say so. */
      readonly isUsers?: true;
    };
