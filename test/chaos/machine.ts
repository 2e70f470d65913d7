/** The stack of one machine with two of each process, each behind proxies of its own and with bounded disks. */
import { cpSync, mkdirSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { uniform } from '../../bench/mix/flow.ts'
import type { ReportSigner } from '../../stack/oracle.ts'
import type { ProcessSpec } from '../../stack/process-spec.ts'
import { type Stack, startStack } from '../../stack/stack.ts'
import type { Managed } from '../../stack/supervisor.ts'
import { type SecondInstance, startSecondInstance } from '../e2e/support/second-instance.ts'
import { setAhead, shadowClock } from '../e2e/support/shifted-time.ts'
import { ChainFaults } from './chain.ts'
import { Clocks, stepOf } from './clock.ts'
import { Disks } from './disks.ts'
import { type Audited, type ChaosExchange, chosen, type Injected, type Skipped } from './exchange.ts'
import { Links, type NamedLink } from './links.ts'
import type { Manner } from './node.ts'
import type { PlannedFault, PlannedRun } from './plan.ts'
import { engineCanFail, until } from './recovery.ts'
import type { FaultName, Target } from './table.ts'

const DATABASE_SETTINGS = ['max_wal_size=128MB', 'min_wal_size=32MB']
/** Sizes in megabytes. */
const DISKS = { data: 512, postgres: 768, log: 64 }
const READY_MS = 120_000
const DELAY_MS = { least: 50, range: 200 }
/** Thousandths. */
const LOSS = { least: 20, range: 80 }

/** Names by which the faults know the stack's processes. */
const FIRST: Readonly<Record<string, string>> = {
  engine: 'engine 1',
  'engine standby': 'engine 2',
  api: 'api 1',
  keeper: 'keeper 1',
  indexer: 'indexer 1',
  issuer: 'issuer',
  backstop: 'backstop',
}
const SECOND = ['api', 'keeper', 'indexer']
const NAMES = [...Object.values(FIRST), ...SECOND.map((name) => `${name} 2`)]

const MANNERS: Partial<Record<FaultName, Manner>> = {
  'silent node': 'silent',
  'lying node': 'lying',
  'repeating node': 'repeating',
  'dropping node': 'dropping',
}

const isOf = (name: string, target: Target): boolean => name.split(' ')[0] === target

interface Parts {
  readonly stack: Stack
  readonly second: SecondInstance
  readonly links: Links
  readonly disks: Disks
  readonly clocks: Clocks
  readonly dataDir: string
  readonly firstBlock: number
}

const logFolder = (dataDir: string, name: string): string => join(dataDir, 'logs', name.replaceAll(' ', '-'))

/** `runs`: those that it plays. */
export async function startMachine(runs: readonly PlannedRun[]): Promise<ChaosExchange> {
  const dataDir = mkdtempSync(join(tmpdir(), 'cb-chaos-'))
  const disks = Disks.mount(dataDir, [
    [dataDir, DISKS.data],
    [join(dataDir, 'postgres'), DISKS.postgres],
    ...NAMES.map((name) => [logFolder(dataDir, name), DISKS.log] as const),
  ])
  mkdirSync(join(dataDir, 'links'))
  const clocks = new Clocks(join(dataDir, 'clocks'))
  const links = new Links(join(dataDir, 'links'), uniform(runs[0]?.seed ?? 0))
  const adapt = async (name: string, spec: ProcessSpec): Promise<ProcessSpec> => {
    const { env, ...adapted } = await links.adapt(name, spec)
    return { ...adapted, env: { ...env, ...clocks.variables(name) }, logDir: logFolder(dataDir, name) }
  }
  const undo: (() => Promise<void>)[] = [() => disks.remove(), () => links.close()]
  try {
    const stack = await startStack(
      {
        port: 0,
        dataDir,
        fresh: false,
        bots: false,
        backstop: true,
        standby: true,
        databaseSettings: DATABASE_SETTINGS,
        adapt: (spec) => adapt(FIRST[spec.name] ?? spec.name, spec),
      },
      () => {},
    )
    undo.push(() => stack.stop())
    const second = await startSecondInstance(stack, join(dataDir, 'logs'), (spec) =>
      adapt(`${spec.name} 2`, spec),
    )
    undo.push(() => second.stop())
    const firstBlock = await stack.provider.getBlockNumber()
    const steps = runs.some(({ faults }) =>
      faults.some(({ fault, target }) => fault === 'clock step' && target === 'primary'),
    )
    if (steps) await shadowClock(stack.db)
    const machine = new Machine({ stack, second, links, disks, clocks, dataDir, firstBlock }, undo)
    await machine.recovered()
    return machine
  } catch (error) {
    for (const step of undo.toReversed()) await step()
    throw error
  }
}

class Machine implements ChaosExchange {
  readonly kind = 'machine'
  readonly audited: Audited
  readonly oracle: ReportSigner
  readonly apis: readonly string[]
  readonly #parts: Parts
  readonly #undo: readonly (() => Promise<void>)[]
  readonly #chain: ChainFaults
  readonly #processes: ReadonlyMap<string, Managed>

  constructor(parts: Parts, undo: readonly (() => Promise<void>)[]) {
    const { stack, second } = parts
    this.#parts = parts
    this.#undo = undo
    this.audited = stack
    this.oracle = stack.oracle
    this.apis = [stack.file.base_url, second.baseUrl]
    this.#chain = new ChainFaults(stack.chain, stack.provider, parts.firstBlock)
    const { engine, standby, api, keeper, indexer, issuer, backstop } = stack
    const first = [engine, standby, api, keeper, indexer, issuer, backstop?.process]
    const found = [...first, second.api, second.keeper, second.indexer]
    this.#processes = new Map(NAMES.map((name, at) => [name, found[at] as Managed]))
  }

  get keptLogs(): string {
    return `${this.#parts.dataDir}-logs`
  }

  async recovered(): Promise<void> {
    const { stack } = this.#parts
    for (const process of this.#processes.values()) await process.ready(READY_MS)
    await until('the engines have caught up', () =>
      engineCanFail([this.#process('engine 1').url, this.#process('engine 2').url]),
    )
    await until('the database answers', async () => {
      await stack.db.selectFrom('markets').select('market_id').execute()
      return true
    })
  }

  async stop(keep: boolean): Promise<void> {
    const [removeDisks, ...others] = this.#undo
    for (const step of others.toReversed()) await step()
    const { dataDir } = this.#parts
    if (keep) {
      cpSync(join(dataDir, 'logs'), this.keptLogs, { recursive: true })
      cpSync(join(dataDir, 'postgres', 'postgres.log'), join(this.keptLogs, 'postgres.log'))
    }
    await removeDisks?.()
  }

  async inject(fault: PlannedFault): Promise<Injected | Skipped> {
    const { target, choice } = fault
    const names = NAMES.filter((name) => isOf(name, target))
    if (fault.fault === 'partition') return this.#partition(names[choice % names.length] ?? target, fault)
    if (target === 'chain') return this.#onChain(fault)
    if (target === 'primary') return this.#onDatabase(fault)
    return this.#onProcess(chosen(names, choice), fault)
  }

  #process(name: string): Managed {
    return this.#processes.get(name) as Managed
  }

  #failing(names: readonly string[]): readonly string[] {
    return this.apis.filter((_, at) => names.includes(`api ${at + 1}`))
  }

  #partition(name: string, { choice, size }: PlannedFault): Injected {
    const cut: NamedLink = chosen(this.#parts.links.of(name), choice + size)
    cut.link.set({ isCut: true })
    return {
      on: `${cut.from} and ${cut.to}`,
      hasTwin: true,
      fails: this.#failing([cut.from]),
      heal: async () => cut.link.set({ isCut: false }),
    }
  }

  #weather(on: string, hasTwin: boolean, { fault, size }: PlannedFault): Injected {
    const delayMs = fault === 'delay' ? DELAY_MS.least + (size % DELAY_MS.range) : 0
    const loss = fault === 'loss' ? LOSS.least + (size % LOSS.range) : 0
    const set = (weather: { delayMs: number; loss: number }): void => {
      for (const { link } of this.#parts.links.of(on)) link.set(weather)
    }
    set({ delayMs, loss })
    return {
      on: `${on} (${delayMs} ms, ${loss} ‰)`,
      hasTwin,
      fails: this.#failing([on]),
      heal: async () => set({ delayMs: 0, loss: 0 }),
    }
  }

  #disk(on: string, folder: string, hasTwin: boolean): Injected | Skipped {
    const { disks } = this.#parts
    if (disks.problem !== null) return { skipped: disks.problem }
    disks.fill(folder)
    return {
      on,
      hasTwin,
      fails: this.#failing([on]),
      heal: async () => {
        disks.free(folder)
        await this.#processes.get(on)?.ready(READY_MS)
      },
    }
  }

  async #onProcess(name: string, planned: PlannedFault): Promise<Injected | Skipped> {
    const process = this.#process(name)
    const base = { on: name, hasTwin: true, fails: this.#failing([name]) }
    const ready = () => process.ready(READY_MS)
    switch (planned.fault) {
      case 'kill':
        signal(process, 'SIGKILL')
        return { ...base, heal: ready }
      case 'stop':
        signal(process, 'SIGSTOP')
        return { ...base, heal: async () => signal(process, 'SIGCONT') }
      case 'restart':
        await process.restart('SIGTERM')
        return { ...base, heal: ready }
      case 'delay':
      case 'loss':
        return this.#weather(name, true, planned)
      case 'clock step': {
        const { clocks } = this.#parts
        const step = stepOf(planned)
        clocks.set(name, step)
        return { ...base, fails: [], on: `${name} (${step} ms)`, heal: async () => clocks.set(name, 0) }
      }
      case 'disk full':
        return this.#disk(name, logFolder(this.#parts.dataDir, name), true)
      default: {
        const node = this.#parts.links.nodes.get(name)
        const manner = MANNERS[planned.fault]
        if (node === undefined || manner === undefined) throw unknown(planned)
        node.set(manner)
        return { ...base, heal: async () => node.set('honest') }
      }
    }
  }

  async #onDatabase(planned: PlannedFault): Promise<Injected | Skipped> {
    const { db, postgres } = this.#parts.stack
    const base = { on: 'primary', hasTwin: false, fails: [] }
    const heal = () => this.recovered()
    switch (planned.fault) {
      case 'kill':
        postgres.signal('SIGKILL')
        return { ...base, heal }
      case 'stop':
        postgres.signal('SIGSTOP')
        return { ...base, heal: async () => postgres.signal('SIGCONT') }
      case 'restart':
        await postgres.restart()
        return { ...base, heal }
      case 'delay':
      case 'loss':
        return this.#weather('primary', false, planned)
      case 'clock step': {
        const step = stepOf(planned)
        await setAhead(db, step)
        return {
          ...base,
          on: `primary (${step} ms)`,
          heal: async () => {
            await setAhead(db, 0)
          },
        }
      }
      case 'disk full': {
        const disk = this.#disk('primary', join(this.#parts.dataDir, 'postgres'), false)
        if ('skipped' in disk) return disk
        return {
          ...disk,
          heal: async () => {
            await disk.heal()
            await heal()
          },
        }
      }
      default:
        throw unknown(planned)
    }
  }

  async #onChain(planned: PlannedFault): Promise<Injected | Skipped> {
    switch (planned.fault) {
      case 'delay':
      case 'loss':
        return this.#weather('chain', false, planned)
      case 'disk full':
        return this.#disk('chain', this.#parts.dataDir, false)
      default:
        return this.#chain.inject(planned)
    }
  }
}

function signal(process: Managed, name: NodeJS.Signals): void {
  const pid = process.pid()
  if (pid !== null) globalThis.process.kill(pid, name)
}

const unknown = ({ fault, target }: PlannedFault): Error =>
  new Error(`the machine has no fault ${fault} of ${target}`)
