/** API keys: random, shown once, stored as SHA-256 only. */
import { hash, randomBytes } from 'node:crypto'
import { replaceApiKey } from '../../db/api-keys.ts'
import type { Db, Tx } from '../../db/client.ts'

const PREFIX_LENGTH = 10

/** 256 random bits need no slow hash: they cannot be guessed. */
export const hashApiKey = (key: string): Buffer => hash('sha256', key, 'buffer')

/** Creates a key for the user, which replaces the current one. The returned key cannot be read again. */
export async function createApiKey(db: Db | Tx, userId: number): Promise<string> {
  const key = `cb_${randomBytes(32).toString('base64url')}`
  await replaceApiKey(db, userId, {
    key_hash: hashApiKey(key),
    prefix: key.slice(0, PREFIX_LENGTH),
    created_at: Date.now(),
  })
  return key
}
