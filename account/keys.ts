/** Commands on the account's credentials: its API key, and what the exchange knows of the caller. */
import { rotateApiKey } from '../client/api-keys.ts'
import { signIn } from '../client/sign-in.ts'
import { oneOf, text } from '../service/command-line.ts'
import { command } from './command.ts'
import type { Session } from './connect.ts'

const KEY_FLAGS = {
  scope: oneOf(['trade', 'read'], 'what the key may do (default trade)'),
  allow: text('<networks>', 'IP addresses and networks from which the key is accepted, separated by commas'),
} as const

interface KeyValues {
  readonly scope: 'trade' | 'read' | undefined
  readonly allow: string | undefined
}

async function rotate(
  { baseUrl, wallet, storeKey }: Session,
  authorization: string,
  { scope, allow }: KeyValues,
) {
  const key = await rotateApiKey({
    ...{ baseUrl, authorization, wallet },
    ...(scope === undefined ? {} : { scope }),
    ...(allow === undefined ? {} : { allowedAddresses: allow.split(',').map((network) => network.trim()) }),
  })
  const file = storeKey(key.api_key)
  const { api_key, ...facts } = key
  return file === null ? { api_key, ...facts } : { api_key_file: file, ...facts }
}

export const KEY_COMMANDS = {
  me: command('show the account, its API key and its limits', '', {}, ({ client }) => client.account.me()),
  'create-key': command(
    'create the API key after signing in with the wallet; replaces the current key',
    '',
    KEY_FLAGS,
    async (session, _positionals, flags) => {
      const { issuerUrl, wallet } = session
      if (issuerUrl === undefined) throw new Error('create-key requires --issuer-url, the identity provider')
      const { accessToken } = await signIn({ issuerUrl, wallet })
      return rotate(session, `Bearer ${accessToken}`, flags)
    },
  ),
  'rotate-key': command(
    'replace the API key, with the current one',
    '',
    KEY_FLAGS,
    async (session, _positionals, flags) => {
      const { authorization } = session
      if (authorization === undefined)
        throw new Error('rotate-key requires --api-key-file with the current key')
      return rotate(session, authorization, flags)
    },
  ),
} as const
