/** Stores an owner's groups, one at a time, and finds out what became of an append without an answer. */
import type { Logger } from '../../service/logger.ts'
import {
  AppendUnknown,
  ContentRejected,
  GROUP_VERSION,
  type Group,
  type Journal,
  JournalUnavailable,
  pause,
  type Timer,
} from './ports.ts'

/** `lost`: another member owns the journal, or its history is not this owner's. */
export type StoreOutcome = 'stored' | 'rejected' | 'lost'

/** A group without its place in the journal. */
export interface GroupContent<Row> {
  readonly rows: readonly Row[]
  readonly digest: string
}

export interface Appender<Row> {
  /** The number of the last group that is known to be stored. */
  readonly head: number
  /** Digest of the state after that group. */
  readonly digest: string
  /** Resolves once the outcome is certain, or the appender is stopped (`lost`). */
  store(content: GroupContent<Row>): Promise<StoreOutcome>
  stop(): void
}

export interface AppenderPorts<Row> {
  readonly journal: Journal<Row>
  readonly timer: Timer
  readonly logger: Logger
}

const RETRY_MS = 20

export function createAppender<Row>(
  { journal, timer, logger }: AppenderPorts<Row>,
  token: number,
  start: { readonly head: number; readonly digest: string },
): Appender<Row> {
  let { head, digest } = start
  let isStopped = false

  const groupOf = (content: GroupContent<Row>): Group<Row> => ({
    number: head + 1,
    token,
    version: GROUP_VERSION,
    rows: content.rows,
    before: digest,
    digest: content.digest,
  })

  /**
   * Appends a group without rows at the unknown group's number: it fails if that group is stored. A read counts only
   * after a later append, because replicas show commits before they are durable.
   */
  async function resolve(unknown: Group<Row>): Promise<'stored' | 'absent' | 'lost'> {
    let isStored = false
    while (!isStopped) {
      try {
        const probe = groupOf({ rows: [], digest })
        if (await journal.append(probe)) {
          head = probe.number
          return isStored ? 'stored' : 'absent'
        }
        const [found] = await journal.read(head, 1)
        if (found === undefined || found.number !== head + 1 || found.token !== token) return 'lost'
        // A group with rows is the unknown one; one without is a probe whose answer was lost.
        if (found.rows.length > 0) {
          if (found.digest !== unknown.digest) return 'lost'
          isStored = true
          digest = unknown.digest
        }
        head = found.number
      } catch (error) {
        if (!(error instanceof AppendUnknown || error instanceof JournalUnavailable)) throw error
        await pause(timer, RETRY_MS)
      }
    }
    return 'lost'
  }

  async function store(content: GroupContent<Row>): Promise<StoreOutcome> {
    while (!isStopped) {
      const group = groupOf(content)
      try {
        if (!(await journal.append(group))) return 'lost'
        head = group.number
        digest = group.digest
        return 'stored'
      } catch (error) {
        if (error instanceof ContentRejected) return 'rejected'
        if (error instanceof JournalUnavailable) {
          logger.warn({ err: error, number: group.number }, 'journal unavailable; will retry')
          await pause(timer, RETRY_MS)
          continue
        }
        if (!(error instanceof AppendUnknown)) throw error
        logger.warn({ err: error, number: group.number }, 'outcome of an append unknown; resolving')
      }
      const fate = await resolve(group)
      logger.info({ number: group.number, fate }, 'outcome of the append resolved')
      if (fate !== 'absent') return fate
    }
    return 'lost'
  }

  return {
    get head() {
      return head
    },
    get digest() {
      return digest
    },
    store,
    stop() {
      isStopped = true
    },
  }
}
