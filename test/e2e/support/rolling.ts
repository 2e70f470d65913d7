/** A stack with two of each process, whose processes are replaced one after another. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ProcessSpec } from '../../../stack/process-spec.ts'
import { type Stack, startStack } from '../../../stack/stack.ts'
import { createSupervisor, type Managed, type Supervisor } from '../../../stack/supervisor.ts'
import { engineCanFail, until } from '../../chaos/recovery.ts'
import { type SecondInstance, startSecondInstance } from './second-instance.ts'

const READY_MS = 60_000

export interface RollingOptions {
  /** Changes each process before it starts; the processes of the second instance have names such as `api 2`. */
  readonly change?: (spec: ProcessSpec) => ProcessSpec
  readonly databaseSettings?: readonly string[]
}

/** How a process ended that was replaced. */
export interface Replaced {
  readonly name: string
  readonly drainMs: number
  readonly end: unknown
}

export class RollingStack {
  readonly stack: Stack
  readonly apis: readonly string[]
  readonly replaced: Replaced[] = []
  readonly #second: SecondInstance
  readonly #specs: ReadonlyMap<string, ProcessSpec>
  readonly #running: Map<string, Managed>
  readonly #supervisor: Supervisor
  readonly #logDir: string
  readonly #dataDir: string

  private constructor(
    parts: { readonly stack: Stack; readonly second: SecondInstance; readonly dataDir: string },
    specs: ReadonlyMap<string, ProcessSpec>,
  ) {
    const { stack, second, dataDir } = parts
    this.stack = stack
    this.#second = second
    this.#dataDir = dataDir
    this.#specs = specs
    this.apis = [stack.file.base_url, second.baseUrl]
    const { engine, standby, api, keeper, indexer } = stack
    this.#running = new Map([
      ['engine', engine],
      ['engine standby', standby as Managed],
      ['api', api],
      ['keeper', keeper],
      ['indexer', indexer],
      ['api 2', second.api],
      ['keeper 2', second.keeper],
      ['indexer 2', second.indexer],
    ])
    this.#logDir = join(dataDir, 'replaced')
    this.#supervisor = createSupervisor({ logDir: this.#logDir, report: () => {} })
  }

  static async start({
    change = (spec) => spec,
    databaseSettings = [],
  }: RollingOptions): Promise<RollingStack> {
    const dataDir = mkdtempSync(join(tmpdir(), 'clearbatch-rolling-'))
    const specs = new Map<string, ProcessSpec>()
    const adapt = (suffix: string) => (spec: ProcessSpec) => {
      const adapted = change({ ...spec, name: `${spec.name}${suffix}` })
      specs.set(adapted.name, adapted)
      return adapted
    }
    const stack = await startStack(
      {
        port: 0,
        dataDir,
        fresh: false,
        bots: false,
        backstop: false,
        standby: true,
        databaseSettings,
        adapt: adapt(''),
      },
      () => {},
    )
    const second = await startSecondInstance(stack, join(dataDir, 'logs'), adapt(' 2'))
    const rolling = new RollingStack({ stack, second, dataDir }, specs)
    await rolling.caughtUp()
    return rolling
  }

  /** Ends the process in order and starts it from the sources in the folder; without one, from those of the repository. */
  async replace(name: string, folder?: string): Promise<void> {
    const before = this.#running.get(name) as Managed
    const ended = before.nextEnd()
    const since = performance.now()
    await before.stop()
    this.replaced.push({ name, drainMs: performance.now() - since, end: await ended })
    await this.startAgain(name, folder)
  }

  /** The same for a process that does not run, or ends again and again. */
  async startAgain(name: string, folder?: string): Promise<void> {
    await this.end(name)
    await this.begin(name, folder).ready(READY_MS)
    if (name.startsWith('engine')) await this.caughtUp()
  }

  /** Starts the process without waiting for it. `env`: variables that differ from those of its first start. */
  begin(name: string, folder?: string, env: ProcessSpec['env'] = {}): Managed {
    const spec = this.#specs.get(name) as ProcessSpec
    const args = folder === undefined ? spec.args : spec.args.map((path) => join(folder, path))
    const started = this.#supervisor.start({ ...spec, args, env: { ...spec.env, ...env } })
    this.#running.set(name, started)
    return started
  }

  async end(name: string): Promise<void> {
    await this.#running.get(name)?.stop()
  }

  /** Internal listeners of all processes, by the kind of the process. */
  listeners(): { readonly job: string; readonly url: string }[] {
    return [...this.#specs].flatMap(([name, { env }]) => {
      const { INTERNAL_PORT: port, TLS_CERT_FILE: certificate } = env
      const scheme = certificate === undefined ? 'http' : 'https'
      return port === undefined
        ? []
        : [{ job: name.split(' ')[0] as string, url: `${scheme}://127.0.0.1:${port}` }]
    })
  }

  urlOf(name: string): string {
    return this.#running.get(name)?.url ?? ''
  }

  /** The log of all replacements of the process. */
  logOf(name: string): string {
    return readFileSync(join(this.#logDir, `${name}.log`), 'utf8')
  }

  /** Each member of the engine can take over at once. */
  caughtUp(): Promise<void> {
    const urls = ['engine', 'engine standby'].map((name) => this.urlOf(name))
    return until('the engines have caught up', () => engineCanFail(urls))
  }

  async stop(): Promise<void> {
    await this.#supervisor.stop()
    await this.#second.stop()
    await this.stack.stop()
    rmSync(this.#dataDir, { recursive: true, force: true })
  }
}
