/** A login role per process in the embedded database, with no more rights than the group role of its process. */
import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { PROCESS_ROLES, type Process } from '../db/grants.ts'

export type DatabaseUrls = Readonly<Record<Process, string>>

/** `ownerUrl`: of the migrated database. Each start sets new passwords, so none is stored. */
export async function createLogins(ownerUrl: string): Promise<DatabaseUrls> {
  const owner = new pg.Client(ownerUrl)
  await owner.connect()
  try {
    return {
      api: await createLogin(owner, 'api', ownerUrl),
      keeper: await createLogin(owner, 'keeper', ownerUrl),
      indexer: await createLogin(owner, 'indexer', ownerUrl),
      engine: await createLogin(owner, 'engine', ownerUrl),
    }
  } finally {
    await owner.end()
  }
}

async function createLogin(owner: pg.Client, login: Process, ownerUrl: string): Promise<string> {
  const password = randomBytes(16).toString('hex')
  const found = await owner.query('select from pg_roles where rolname = $1', [login])
  if (found.rowCount === 0) await owner.query(`create role ${login} login`)
  await owner.query(`alter role ${login} password '${password}'`)
  await owner.query(`grant ${PROCESS_ROLES[login]} to ${login}`)
  const url = new URL(ownerUrl)
  url.username = login
  url.password = password
  return url.href
}
