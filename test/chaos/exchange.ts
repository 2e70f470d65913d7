/** An exchange under faults, on one machine or in a cluster: addresses of its apis, faults, and recovery. */
import type { ReportSigner } from '../../stack/oracle.ts'
import type { Stack } from '../../stack/stack.ts'
import type { PlannedFault } from './plan.ts'
import type { ExchangeKind } from './table.ts'

/** A fault that has begun. */
export interface Injected {
  /** Name of the process with its number, and details such as the peer of a partition. */
  readonly on: string
  /** Another process takes over the work: the bounds hold from the injection, not from the heal. */
  readonly hasTwin: boolean
  /** Bound of the times to a batch and to an accepted order, where it is not the bound of all laws. */
  readonly pauseMs?: number
  /** Base URLs of apis that fail: a client with a health check avoids them. */
  readonly fails: readonly string[]
  heal(): Promise<void>
}

/** Why this machine cannot inject the fault. */
export interface Skipped {
  readonly skipped: string
}

export type Audited = Pick<Stack, 'db' | 'provider' | 'specs' | 'file' | 'keys'>

export interface ChaosExchange {
  readonly kind: ExchangeKind
  readonly audited: Audited
  /** Signs prices; null where several signers do. */
  readonly oracle: ReportSigner | null
  /** Base URLs that clients choose from. */
  readonly apis: readonly string[]
  /** Where the logs of all processes are after `stop(true)`. */
  readonly keptLogs: string
  inject(fault: PlannedFault): Promise<Injected | Skipped>
  /** Resolves once every process runs and another fault finds a successor for its process. */
  recovered(): Promise<void>
  /** `keep`: the logs stay. */
  stop(keep: boolean): Promise<void>
}

/** Returns the element that a plan's number chooses. */
export const chosen = <Element>(elements: readonly Element[], number: number): Element => {
  const found = elements[number % elements.length]
  if (found === undefined) throw new Error('there is nothing to choose from')
  return found
}
