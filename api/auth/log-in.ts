/** The user of an address that has proven who it is. Its first log-in creates the user. */
import type { Db } from '../../db/client.ts'
import { findUsers } from '../../db/users.ts'
import type { Address } from '../../domain/units.ts'
import type { EngineCalls } from '../engine-reply.ts'

/** Returns the user's id. */
export type LogIn = (address: Address) => Promise<number>

export const createLogIn =
  (db: Db, engine: EngineCalls): LogIn =>
  async (address) => {
    const known = (await findUsers(db, [address])).get(address)
    if (known !== undefined) return known
    const { userId } = await engine.ask({ kind: 'log_in', address })
    return userId
  }
