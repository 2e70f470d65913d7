/** The table of fault × process: for each cell the exchanges on which it is injected, or the reason why it cannot apply. Pure. */

export const EXCHANGES = ['machine', 'cluster'] as const
/** `machine`: the stack of one machine, through proxies. `cluster`: hosts with Patroni, etcd, Redis and HAProxy. */
export type ExchangeKind = (typeof EXCHANGES)[number]

export const TARGETS = [
  'engine',
  'api',
  'keeper',
  'indexer',
  'issuer',
  'backstop',
  'signer',
  'primary',
  'replica',
  'etcd',
  'redis',
  'sentinel',
  'proxy',
  'chain',
] as const
/** `primary`, `replica`: of Postgres; the machine's one server is a primary. `redis`: its primary. `proxy`: HAProxy. */
export type Target = (typeof TARGETS)[number]

export const FAULTS = [
  'kill',
  'stop',
  'restart',
  'partition',
  'delay',
  'loss',
  'silent node',
  'lying node',
  'repeating node',
  'dropping node',
  'no blocks',
  'fork',
  'clock step',
  'disk full',
  'failover',
  'flush',
] as const
export type FaultName = (typeof FAULTS)[number]

/** Each fault's effect, for `--table`. */
export const MEANINGS: Readonly<Record<FaultName, string>> = {
  kill: 'SIGKILL; the supervisor starts the process again',
  stop: 'SIGSTOP, later SIGCONT',
  restart: 'ends in order and starts again',
  partition: 'nothing passes between the process and a peer, in both directions',
  delay: 'everything that the process sends or receives is late',
  loss: 'parts of what it sends or receives are lost and sent again, some connections end',
  'silent node': 'its JSON-RPC requests have no answer',
  'lying node': 'a receipt is there once, and then missing',
  'repeating node': 'each request reaches the node twice, and its answer arrives twice',
  'dropping node': 'its transactions are acknowledged and lost',
  'no blocks': 'the chain mines nothing',
  fork: 'the last 1 to 8 blocks are replaced by empty ones',
  'clock step': 'its clock steps by up to 5 s, and later back',
  'disk full': 'its folder, a bounded tmpfs, has no free byte',
  failover: 'another server becomes the primary by order, under load',
  flush: 'all keys are deleted',
}

/** Where a cell is injected, or the letter of the reason why it is not. */
export type Cell = readonly ExchangeKind[] | keyof typeof REASONS

export const REASONS = {
  a: 'sends no JSON-RPC request',
  b: 'sends no transaction',
  c: 'a fault of the chain, which all processes see',
  d: 'has no successor to name: its kill and stop are failovers, or it has no state',
  e: 'only Redis has keys to flush',
  f: 'measures durations by its monotonic clock, or reads no clock',
  g: 'writes no file',
} as const satisfies Readonly<Record<string, string>>

const M: Cell = ['machine']
const C: Cell = ['cluster']
const MC: Cell = ['machine', 'cluster']

type Row = Readonly<Record<Target, Cell>>

/** A fault that every process can suffer. */
const EVERYWHERE: Row = {
  engine: MC,
  api: MC,
  keeper: MC,
  indexer: MC,
  issuer: M,
  backstop: M,
  signer: C,
  primary: MC,
  replica: C,
  etcd: C,
  redis: C,
  sentinel: C,
  proxy: C,
  chain: MC,
}

const rowOf = (others: keyof typeof REASONS, cells: Partial<Row>): Row => ({
  ...(Object.fromEntries(TARGETS.map((target) => [target, others])) as unknown as Row),
  ...cells,
})

const NODE: Partial<Row> = { api: M, keeper: M, indexer: M, issuer: M, chain: 'c' }

export const TABLE: Readonly<Record<FaultName, Row>> = {
  kill: EVERYWHERE,
  stop: EVERYWHERE,
  restart: EVERYWHERE,
  partition: EVERYWHERE,
  delay: EVERYWHERE,
  loss: EVERYWHERE,
  'silent node': rowOf('a', NODE),
  'lying node': rowOf('a', NODE),
  'repeating node': rowOf('a', NODE),
  'dropping node': rowOf('b', { keeper: M, chain: 'c' }),
  'no blocks': rowOf('c', { chain: MC }),
  fork: rowOf('c', { chain: MC }),
  'clock step': rowOf('f', {
    engine: M,
    api: M,
    keeper: M,
    indexer: M,
    issuer: M,
    backstop: M,
    signer: C,
    primary: M,
    chain: M,
  }),
  'disk full': { ...EVERYWHERE, proxy: 'g' },
  failover: rowOf('d', { primary: C, redis: C }),
  flush: rowOf('e', { redis: C }),
}

export interface CellName {
  readonly fault: FaultName
  readonly target: Target
}

/** The cells that the exchange injects, in the order of the table. */
export const cellsOf = (exchange: ExchangeKind): readonly CellName[] =>
  FAULTS.flatMap((fault) =>
    TARGETS.filter((target) => {
      const cell = TABLE[fault][target]
      return typeof cell !== 'string' && cell.includes(exchange)
    }).map((target) => ({ fault, target })),
  )

const textOf = (cell: Cell): string =>
  typeof cell === 'string' ? cell : cell.map((exchange) => exchange.slice(0, 1).toUpperCase()).join('')

/** The faults with their effects, and the table of the exchanges that inject them: for `--table`. */
export function tableText(): string {
  const width = Math.max(...FAULTS.map((fault) => fault.length))
  const line = (name: string, cells: readonly string[]): string =>
    [name.padEnd(width), ...cells.map((cell, at) => cell.padEnd(TARGETS[at]?.length ?? 0))]
      .join('  ')
      .trimEnd()
  return [
    ...FAULTS.map((fault) => line(fault, [MEANINGS[fault]])),
    '',
    line('', TARGETS),
    ...FAULTS.map((fault) =>
      line(
        fault,
        TARGETS.map((target) => textOf(TABLE[fault][target])),
      ),
    ),
    '',
    'M: injected on the stack of one machine. C: injected on the cluster. A letter is the reason why the fault cannot apply:',
    ...Object.entries(REASONS).map(([letter, reason]) => `${letter}: ${reason}`),
  ].join('\n')
}
