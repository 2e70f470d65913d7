/** Journal and lease on Postgres. */
import type pg from 'pg'
import {
  appendGroup,
  failureOf,
  readGroups,
  readLease,
  releaseLease,
  renewLease,
  takeLease,
} from '../../db/engine-journal.ts'
import {
  AppendUnknown,
  ContentRejected,
  type Group,
  type Journal,
  JournalUnavailable,
  type Lease,
} from './ports.ts'

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

function toAppendError(error: unknown): Error {
  const failure = failureOf(error)
  if (failure === 'content') return new ContentRejected(messageOf(error), { cause: error })
  if (failure === 'unavailable') return new JournalUnavailable(messageOf(error), { cause: error })
  return new AppendUnknown(messageOf(error), { cause: error })
}

/** Runs an append, which releases the connection. */
export async function append(
  pool: pg.Pool,
  run: (client: pg.PoolClient) => Promise<boolean>,
): Promise<boolean> {
  // Without a connection nothing was sent.
  const client = await pool.connect().catch((error: unknown) => {
    throw new JournalUnavailable(messageOf(error), { cause: error })
  })
  try {
    return await run(client)
  } catch (error) {
    throw toAppendError(error)
  }
}

export const createJournal = <Row>(pool: pg.Pool): Journal<Row> => ({
  append(group) {
    return append(pool, (client) => appendGroup(client, group))
  },
  async read(after, most) {
    try {
      return (await readGroups(pool, after, most)) as unknown as readonly Group<Row>[]
    } catch (error) {
      throw new JournalUnavailable(messageOf(error), { cause: error })
    }
  },
})

export const createLease = (pool: pg.Pool): Lease => ({
  read: () => readLease(pool),
  take: (seen) => takeLease(pool, seen),
  renew: (token) => renewLease(pool, token),
  release: (token) => releaseLease(pool, token),
})
