/** Journal, lease and tables of readers on Postgres. */

import type pg from 'pg'
import {
  appendGroup,
  failureOf,
  RefusedRows,
  readGroups,
  readLease,
  readWritten,
  readWrittenGroups,
  releaseLease,
  renewLease,
  type TableContent,
  takeLease,
  writeAround,
  writeTables,
} from '../../db/engine-journal.ts'
import { shardEnds } from '../../db/journal.ts'
import { announce, type Notice } from '../../db/notifications.ts'
import type { Statement } from '../../db/round-trip.ts'
import type { Entry } from '../../domain/exchange/apply.ts'
import type { ExchangeState } from '../../domain/exchange/state.ts'
import { invariant } from '../../domain/invariant.ts'
import type { Logger } from '../../service/logger.ts'
import {
  AppendUnknown,
  ContentRejected,
  type Group,
  type Journal,
  JournalUnavailable,
  type Lease,
  type Tables,
  type TableWrite,
} from './ports.ts'
import { noticesOf } from './tables/rows.ts'
import { createTableWriter, type PartFactory, type TableWriter } from './tables/table-writer.ts'

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

function toAppendError(error: unknown): Error {
  const failure = failureOf(error)
  if (failure === 'content') return new ContentRejected(messageOf(error), { cause: error })
  if (failure === 'unavailable') return new JournalUnavailable(messageOf(error), { cause: error })
  return new AppendUnknown(messageOf(error), { cause: error })
}

/** Without a connection nothing was sent. */
const connect = (pool: pg.Pool): Promise<pg.PoolClient> =>
  pool.connect().catch((error: unknown) => {
    throw new JournalUnavailable(messageOf(error), { cause: error })
  })

async function available<Value>(read: Promise<Value>): Promise<Value> {
  try {
    return await read
  } catch (error) {
    throw new JournalUnavailable(messageOf(error), { cause: error })
  }
}

/** Evidence that is stored with a group and is in no row of it. */
export interface Evidence<Row> {
  statementsOf(rows: readonly Row[]): Statement[]
  stored(rows: readonly Row[]): void
}

export const createJournal = <Row>(pool: pg.Pool, evidence?: Evidence<Row>): Journal<Row> => ({
  async append(group) {
    const client = await connect(pool)
    try {
      const isStored = await appendGroup(client, group, evidence?.statementsOf(group.rows))
      if (isStored) evidence?.stored(group.rows)
      return isStored
    } catch (error) {
      throw toAppendError(error)
    }
  },
  read: (after, most) => available(readGroups(pool, after, most)) as unknown as Promise<Group<Row>[]>,
  readWritten: (after, most) =>
    available(readWrittenGroups(pool, after, most)) as unknown as Promise<Group<Row>[]>,
})

export const createLease = (pool: pg.Pool): Lease => ({
  read: () => readLease(pool),
  take: (seen) => takeLease(pool, seen),
  renew: (token) => renewLease(pool, token),
  release: (token) => releaseLease(pool, token),
})

export interface TablesOptions {
  readonly logger: Logger
  /** A row that the database refuses is missing from a table. */
  readonly onRefused: () => void
  /** Tables besides those of the exchange. */
  readonly further?: readonly PartFactory[]
}

/** The tables of readers that follow the state. */
export function createTables(
  pool: pg.Pool,
  state: ExchangeState,
  { logger, onRefused, further }: TablesOptions,
): Tables<Entry> {
  /** An owner has one. A follower would collect changes that the owner has written, without end. */
  let begun: TableWriter | null = null
  const writer = (): TableWriter => {
    invariant(begun !== null, 'changes are noted before they are collected')
    return begun as TableWriter
  }

  function leftOut({ name: statement }: Statement, row: unknown, err: unknown): void {
    logger.error({ err, statement, row }, 'the database refuses a row of a table of readers; it is left out')
    onRefused()
  }

  const notify = (notices: readonly Notice[]): void =>
    void announce(pool, notices).catch((err: unknown) =>
      logger.warn({ err }, 'announcing written rows failed; readers find them by polling'),
    )

  const writeOf = (content: TableContent, notices: readonly Notice[]): TableWrite => {
    let isRefused = false
    let isTried = false
    const refused = new RefusedRows()
    return {
      async run(step) {
        const client = await connect(pool)
        try {
          const isWritten = await (isRefused
            ? writeAround(client, step, content, refused, leftOut)
            : writeTables(client, step, content))
          // If an earlier attempt has written the groups, this attempt finds other groups in the tables.
          if (isWritten || isTried) notify(notices)
          return isWritten
        } catch (error) {
          isTried = true
          isRefused ||= failureOf(error) === 'content'
          const failure = toAppendError(error)
          throw failure instanceof ContentRejected
            ? new JournalUnavailable(failure.message, { cause: error })
            : failure
        }
      },
    }
  }

  return {
    written: () => available(readWritten(pool)),
    begin() {
      begun = createTableWriter(state, further)
    },
    collect: (rows) =>
      writeOf({ ends: shardEnds(rows), statements: writer().collect(rows) }, noticesOf(rows)),
    giveBack: () => writer().giveBack(),
    isAwaited: (rows) => rows.some(({ row }) => row.kind === 'batch_cleared'),
  }
}
