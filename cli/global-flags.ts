/** Flags of every command. */
import { text, toggle, wholeNumber } from '../service/command-line.ts'

export const GLOBAL_FLAGS = {
  profile: text('<name>', 'local, testnet, mainnet, or a name of your own (default: of the last login)'),
  url: text('<url>', 'address of the exchange'),
  'rpc-url': text('<url>', 'node of the chain, for deposits, withdrawals and proofs'),
  'issuer-url': text('<url>', 'identity provider, for auth login'),
  stack: text('<file>', 'stack.json of a local stack (default .clearbatch/stack.json)'),
  account: wholeNumber('account of the local stack: its index in stack.json (default 0)'),
  'key-file': text(
    '<file>',
    'private key of the account or a session key: hex, or an encrypted keystore; - is standard input',
  ),
  'api-key-file': text('<file>', 'API key; - is standard input'),
  'token-file': text('<file>', 'access token of the identity provider; - is standard input'),
  timeout: wholeNumber('seconds for all attempts of a request (default 15)', { least: 1, most: 3600 }),
  json: toggle('print JSON, and errors as JSON on stderr'),
  jsonl: toggle('print one JSON object per line'),
  debug: toggle('print stack traces of errors'),
} as const

export interface GlobalValues {
  readonly profile?: string | undefined
  readonly url?: string | undefined
  readonly 'rpc-url'?: string | undefined
  readonly 'issuer-url'?: string | undefined
  readonly stack?: string | undefined
  readonly account?: number | undefined
  readonly 'key-file'?: string | undefined
  readonly 'api-key-file'?: string | undefined
  readonly 'token-file'?: string | undefined
  readonly timeout?: number | undefined
  readonly json?: boolean
  readonly jsonl?: boolean
  readonly debug?: boolean
}
