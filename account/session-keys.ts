/** Commands on session keys, which sign orders and adjustments in place of the owner. */
import { existsSync, writeFileSync } from 'node:fs'
import { Wallet } from 'ethers'
import { oneOf, text } from '../service/command-line.ts'
import { command } from './command.ts'

/** The address of a fresh key, whose private key is stored before it is registered. */
function createKey(file: string): string {
  if (existsSync(file)) throw new Error(`${file} exists: expected a new file for the session key`)
  const { privateKey, address } = Wallet.createRandom()
  writeFileSync(file, `${privateKey}\n`, { mode: 0o600, flag: 'wx' })
  return address
}

export const SESSION_KEY_COMMANDS = {
  'keys list': command(
    'list the session keys',
    '',
    { status: oneOf(['ACTIVE', 'EXPIRED', 'REVOKED'], 'only keys with this status') },
    async ({ client }, _positionals, { status }) =>
      (await client.sessionKeys.list(status === undefined ? {} : { status })).session_keys,
  ),
  'keys register': command(
    'register a session key and wait until the chain has it',
    '[address]',
    { 'new-key-file': text('<file>', 'creates a key and stores its private key in this file') },
    async ({ client }, [address], flags) => {
      const file = flags['new-key-file']
      if ((address === undefined) === (file === undefined))
        throw new Error('expected either the address of the key or --new-key-file')
      return client.sessionKeys.register(address ?? createKey(file as string))
    },
  ),
  'keys revoke': command(
    'revoke a session key and wait until the chain has done so',
    '<address>',
    {},
    ({ client }, [address = '']) => client.sessionKeys.revoke(address),
  ),
} as const
