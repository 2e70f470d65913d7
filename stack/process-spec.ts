/** How a process of an exchange is started. */
export interface ProcessSpec {
  readonly name: string
  readonly args: readonly string[]
  /** Program and arguments that start Node.js, such as in another network namespace. */
  readonly launcher?: readonly string[]
  readonly env: Readonly<Record<string, string>>
  /** Returns 200 once the process is ready; null if the process serves no HTTP. */
  readonly readyUrl: string | null
  /** Folder of its log, which exists; by default that of the supervisor. */
  readonly logDir?: string
}

/** Changes a process before it starts, for example its addresses to those of proxies. */
export type Adapt = (spec: ProcessSpec) => ProcessSpec | Promise<ProcessSpec>
