/** The keys of the local identity provider, stored in the data directory, so that a restart of its process ends no token. */
import { randomBytes } from 'node:crypto'
import { exportJWK, generateKeyPair } from 'jose'
import { readJson, writePrivate } from '../data-dir.ts'
import type { IssuerKeys } from './provider.ts'

const areKeys = ({ signing, cookies }: Partial<IssuerKeys>): boolean =>
  typeof signing?.d === 'string' &&
  typeof signing.kid === 'string' &&
  Array.isArray(cookies) &&
  cookies.length > 0 &&
  cookies.every((each) => typeof each === 'string')

/** Creates the keys at the first start. Throws a StackError that names the file if its content is damaged. */
export async function loadIssuerKeys(path: string): Promise<IssuerKeys> {
  const stored = readJson<IssuerKeys>(path, areKeys)
  if (stored !== null) return stored
  const { privateKey } = await generateKeyPair('ES256', { extractable: true })
  const kid = randomBytes(8).toString('hex')
  const signing = { ...(await exportJWK(privateKey)), kid, alg: 'ES256', use: 'sig' }
  const keys: IssuerKeys = { signing, cookies: [randomBytes(32).toString('base64url')] }
  writePrivate(path, keys)
  return keys
}
