/** API keys: random, shown once, stored as SHA-256 only. */
import { hash, randomBytes } from 'node:crypto'
import { DEFAULT_KEY, type HashedApiKey, type KeyTerms, replaceApiKey } from '../../db/api-keys.ts'
import type { Db, Tx } from '../../db/client.ts'

export const PREFIX_LENGTH = 10
/** The form of every key, checked before the database is asked. */
const API_KEY = /^cb_[A-Za-z0-9_-]{43}$/

export const isApiKey = (text: string): boolean => API_KEY.test(text)

/** 256 random bits need no slow hash: they cannot be guessed. The text has a character for each byte. */
export const hashText = (key: string): string => hash('sha256', key, 'binary')

export const ALLOWS_ALL: KeyTerms = { scope: 'trade', allowed_addresses: null }

export interface GeneratedKey {
  /** Shown once: only its hash is stored. */
  readonly apiKey: string
  readonly stored: HashedApiKey
}

export function generateApiKey(name: string, terms: KeyTerms, now: number): GeneratedKey {
  const apiKey = `cb_${randomBytes(32).toString('base64url')}`
  const prefix = apiKey.slice(0, PREFIX_LENGTH)
  const { scope, allowed_addresses } = terms
  return {
    apiKey,
    stored: {
      name,
      key_hash: Buffer.from(hashText(apiKey), 'binary'),
      prefix,
      created_at: now,
      scope,
      allowed_addresses,
    },
  }
}

/** Creates the user's key of this name, which replaces the current one. The returned key cannot be read again. */
export async function createApiKey(
  db: Db | Tx,
  userId: number,
  terms: KeyTerms = ALLOWS_ALL,
  now = Date.now(),
  name = DEFAULT_KEY,
): Promise<string> {
  const { apiKey, stored } = generateApiKey(name, terms, now)
  await replaceApiKey(db, userId, stored)
  return apiKey
}
