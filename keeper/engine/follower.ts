/** Applies the journal's groups in their order, and compares the digest of each with that of the state. */
import type { Logger } from '../../service/logger.ts'
import type { Machine } from './machine.ts'
import { GROUP_VERSION, type Group, type Journal } from './ports.ts'

/** Why a follower stops: it must not become the owner. */
export type FollowerFault =
  | { readonly fault: 'version'; readonly number: number; readonly version: number }
  | {
      readonly fault: 'digest'
      readonly number: number
      readonly expected: string
      readonly received: string
    }
  | { readonly fault: 'gap'; readonly number: number; readonly expected: number }
  | { readonly fault: 'row'; readonly number: number; readonly error: unknown }
  /** A group that the follower has applied is not the journal's: the database lost it, or was restored. */
  | { readonly fault: 'history'; readonly number: number }

export interface Follower<Row> {
  /** The number of the last applied group. */
  readonly head: number
  readonly fault: FollowerFault | null
  /**
   * Applies what has been appended since, as far as the tables of readers contain it: a new owner can then write what they lack. Resolves with the
   * applied groups, none at the end.
   */
  advance(): Promise<readonly Group<Row>[]>
  /** The same up to the journal's head. Only an owner may do so, which notes what the tables lack. */
  advanceToHead(): Promise<readonly Group<Row>[]>
  /** Compares the last applied group with the journal's. A database shows groups before they are durable. */
  verifyHead(): Promise<void>
}

/** Groups per read: a follower that is far behind holds no more in memory. */
const MOST_GROUPS = 500

export function createFollower<Command, Row, Answer>(
  machine: Machine<Command, Row, Answer>,
  journal: Journal<Row>,
  logger: Logger,
  start: { readonly head: number },
): Follower<Row> {
  let { head } = start
  let token: number | null = null
  let fault: FollowerFault | null = null

  function faultOf(group: Group<Row>): FollowerFault | null {
    const { number, version } = group
    if (number !== head + 1) return { fault: 'gap', number, expected: head + 1 }
    if (version > GROUP_VERSION) return { fault: 'version', number, version }
    if (group.before !== machine.digest()) return { fault: 'history', number: head }
    try {
      for (const row of group.rows) machine.apply(row)
    } catch (error) {
      return { fault: 'row', number, error }
    }
    const received = machine.digest()
    return received === group.digest ? null : { fault: 'digest', number, expected: group.digest, received }
  }

  async function applied(read: Journal<Row>['read']): Promise<readonly Group<Row>[]> {
    if (fault !== null) return []
    const groups = await read(head, MOST_GROUPS)
    for (const group of groups) {
      fault = faultOf(group)
      if (fault !== null) {
        logger.error(fault, 'the follower differs from the journal and stops')
        return []
      }
      machine.forget(machine.position())
      head = group.number
      token = group.token
    }
    return groups
  }

  return {
    get head() {
      return head
    },
    get fault() {
      return fault
    },
    advance: () => applied(journal.readWritten),
    advanceToHead: () => applied(journal.read),
    async verifyHead() {
      if (head === 0 || fault !== null) return
      const [last] = await journal.read(head - 1, 1)
      const isOwn = last?.number === head && last.digest === machine.digest()
      if (!isOwn || (token !== null && last.token !== token)) fault = { fault: 'history', number: head }
    },
  }
}
