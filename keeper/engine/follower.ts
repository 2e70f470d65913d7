/**
 * Applies the journal's groups in their order, and compares the digest of each with that of the state. An owner with another state version has
 * other digests: its groups are compared with each other.
 */
import { areComparable } from '../../domain/exchange/state-version.ts'
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

/** The fault in words, with what an operator can do about a later version's rows. */
export function reasonOf(fault: FollowerFault): string {
  switch (fault.fault) {
    case 'version':
      return `group ${fault.number} has version ${fault.version}, this version reads ${GROUP_VERSION}; start a later version of the engine`
    case 'row': {
      const message = fault.error instanceof Error ? fault.error.message : String(fault.error)
      return `group ${fault.number} cannot be applied: ${message}; if a later version has written it, start that version of the engine`
    }
    default:
      return fault.fault
  }
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
  /** Digest of the last applied group, as the journal has it. */
  let last: string | null = null
  let fault: FollowerFault | null = null

  function faultOf(group: Group<Row>): FollowerFault | null {
    const { number, version } = group
    if (number !== head + 1) return { fault: 'gap', number, expected: head + 1 }
    if (version > GROUP_VERSION) return { fault: 'version', number, version }
    if (!isExpected(group.before)) return { fault: 'history', number: head }
    try {
      for (const row of group.rows) machine.apply(row)
    } catch (error) {
      return { fault: 'row', number, error }
    }
    const received = machine.digest()
    if (received === group.digest || !areComparable(group.digest, received)) return null
    return { fault: 'digest', number, expected: group.digest, received }
  }

  /** Whether the digest can be that of the journal's last applied group. */
  function isExpected(digest: string): boolean {
    const own = machine.digest()
    if (areComparable(digest, own)) return digest === own
    return last === null || !areComparable(digest, last) || digest === last
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
      last = group.digest
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
      const [found] = await journal.read(head - 1, 1)
      const isOwn = found?.number === head && isExpected(found.digest)
      if (!isOwn || (token !== null && found.token !== token)) fault = { fault: 'history', number: head }
    },
  }
}
