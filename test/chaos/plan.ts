/** The runs of a campaign: the exchange, load and timed faults of each, as a pure function of the seed. */
import { randomOf } from '../support/random.ts'
import { type CellName, cellsOf, type ExchangeKind, type FaultName, type Target } from './table.ts'

export interface PlannedFault {
  readonly fault: FaultName
  readonly target: Target
  /** Milliseconds after the start of the run; later if the exchange has not recovered from the fault before. */
  readonly at: number
  /** From the injection until it is healed. */
  readonly lasts: number
  /** Chooses among the instances, peers and signs of the fault. */
  readonly choice: number
  /** Chooses depth, length of a step or amount of delay. */
  readonly size: number
}

/** `crash`: random orders while a price falls by 30 %, only on one machine: a cluster's prices have several signers. */
export type LoadName = 'random' | 'recorded' | 'crash'

const LOADS: Readonly<Record<ExchangeKind, readonly LoadName[]>> = {
  machine: ['random', 'recorded', 'crash'],
  cluster: ['random', 'recorded'],
}

export interface PlannedRun {
  /** From 1. */
  readonly number: number
  /** First run of its exchange: a repetition plays from there. */
  readonly first: number
  readonly exchange: ExchangeKind
  readonly load: LoadName
  /** Seed of its load. */
  readonly seed: number
  readonly faults: readonly PlannedFault[]
}

export interface PlanTerms {
  readonly seed: number
  /** Only this kind of exchange; by default one group of three is played on the cluster. */
  readonly exchange?: ExchangeKind | undefined
}

/** Runs of one exchange: its start takes longer than a run. */
export const GROUP_RUNS = 6
/** Every third group is the cluster's. */
const GROUPS: readonly ExchangeKind[] = ['machine', 'cluster', 'machine']

/** The load of a run lasts at least so long. */
export const RUN_MS = 30_000
const FAULTS_PER_RUN = 3
/** Before the first fault, for the load to begin. */
const LEAD_MS = 3_000
/** Longer than each bound of a takeover, so that only another process can keep it. */
const LASTS = { least: 5_500, range: 1_500 }
/** A fault of a service without another instance: clients meanwhile wait, retry or fail. */
const SERVICE_LASTS = { least: 500, range: 4_000 }
/** After each fault: the time in which the exchange must trade again. */
export const AFTER_MS = 6_000

/** Nothing takes over from these while they fail. */
const SERVICES: readonly Target[] = ['primary', 'chain']

/** Runs 1 to `runs`. The first runs of a longer plan are those of a shorter one. */
export function planOf({ seed, exchange }: PlanTerms, runs: number): readonly PlannedRun[] {
  const random = randomOf(seed)
  const bags = { machine: new Bag(cellsOf('machine'), random), cluster: new Bag(cellsOf('cluster'), random) }
  return Array.from({ length: runs }, (_, index) => {
    const group = Math.floor(index / GROUP_RUNS)
    const kind = exchange ?? (GROUPS[group % GROUPS.length] as ExchangeKind)
    return {
      number: index + 1,
      first: group * GROUP_RUNS + 1,
      exchange: kind,
      load: LOADS[kind][random(LOADS[kind].length)] as LoadName,
      seed: random(1_000_000),
      faults: planFaults(bags[kind], random),
    }
  })
}

type Random = (end: number) => number

function planFaults(bag: Bag, random: Random): readonly PlannedFault[] {
  let at = LEAD_MS
  return Array.from({ length: FAULTS_PER_RUN }, () => {
    const { fault, target } = bag.next()
    const isShort = SERVICES.includes(target) && fault !== 'disk full'
    const { least, range } = isShort ? SERVICE_LASTS : LASTS
    const planned = { fault, target, at: at + random(1_000), lasts: least + random(range) }
    at = planned.at + planned.lasts + AFTER_MS
    return { ...planned, choice: random(1_000_000), size: random(1_000) }
  })
}

/** Returns all cells in random order before any of them again. */
class Bag {
  readonly #cells: readonly CellName[]
  readonly #random: Random
  #left: CellName[] = []

  constructor(cells: readonly CellName[], random: Random) {
    this.#cells = cells
    this.#random = random
  }

  next(): CellName {
    if (this.#left.length === 0) this.#left = [...this.#cells]
    const [cell] = this.#left.splice(this.#random(this.#left.length), 1)
    return cell as CellName
  }
}

/** The flags that repeat the run, after `npm run chaos --`. */
export const repeatFlags = ({ seed, exchange }: PlanTerms, { number }: Pick<PlannedRun, 'number'>): string =>
  [`--seed ${seed}`, `--run ${number}`, ...(exchange === undefined ? [] : [`--exchange ${exchange}`])].join(
    ' ',
  )
