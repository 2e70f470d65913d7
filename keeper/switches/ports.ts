/** What the dead-man switches read and write. */
import type { Fence } from '../../db/fence.ts'
import type { MarketId, Millis, UserId } from '../../domain/units.ts'

/** A fired dead-man switch: the orders that the account had open at `firedAt` must be cancelled. */
export interface FiredSwitch {
  readonly account: UserId
  readonly firedAt: Millis
}

export interface NextSwitches {
  /** Time at which the next armed switch is due; null if none is armed. */
  readonly dueAt: Millis | null
  /** A fired switch is not completed. */
  readonly hasFired: boolean
}

export interface SwitchStore {
  /**
   * Moves every due switch to the fired ones. A switch that is armed again before that is not due, and the switch of a connection is not
   * until the database has been reachable for its grace.
   */
  fire(fence: Fence, now: Millis, reachableSince: Millis): Promise<void>
  /** Fired switches that are not completed, oldest first, at most 500. */
  fired(): Promise<readonly FiredSwitch[]>
  /** The markets in which one of the accounts has live orders. Orders placed after this call are newer than the switch. */
  markets(fired: readonly FiredSwitch[]): Promise<readonly MarketId[]>
  /**
   * Cancels in one market the oldest orders accepted before each switch fired, at most MAX_ORDERS_PER_TURN. Returns their number. Safe to
   * repeat.
   */
  cancel(fence: Fence, marketId: MarketId, fired: readonly FiredSwitch[], at: Millis): Promise<number>
  forget(fence: Fence, fired: readonly FiredSwitch[]): Promise<void>
  /** What the next pass has to do. */
  next(): Promise<NextSwitches>
}
