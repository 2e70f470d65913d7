/** The user of an address that has proven who it is. Its first log-in creates the user. */
import type { Db } from '../../db/client.ts'
import { appendRows, lockShard } from '../../db/journal.ts'
import { createUsers, findUsers } from '../../db/users.ts'
import { ACCOUNTS_SHARD } from '../../domain/journal/journal-row.ts'
import type { Address } from '../../domain/units.ts'
import type { EngineCalls } from '../engine-reply.ts'

/** Returns the user's id. `at`: the time of the log-in. */
export type LogIn = (address: Address, at: number) => Promise<number>

export const createLogIn =
  (db: Db, engine: EngineCalls | null): LogIn =>
  async (address, at) => {
    const known = (await findUsers(db, [address])).get(address)
    if (known !== undefined) return known
    if (engine === null) return createUser(db, address, at)
    const { userId } = await engine.ask({ kind: 'log_in', address })
    return userId
  }

const createUser = (db: Db, address: Address, at: number): Promise<number> =>
  db.transaction().execute(async (tx) => {
    const shard = await lockShard(tx, ACCOUNTS_SHARD)
    const { users, rows } = await createUsers(tx, [address], at)
    await appendRows(tx, shard, rows)
    return users.get(address) as number
  })
