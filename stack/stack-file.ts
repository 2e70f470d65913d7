/** `<data-dir>/stack.json`: addresses and accounts of a running stack, written when the stack is ready. */
import { readJson } from './data-dir.ts'
import { StackError } from './options.ts'

export interface StackAccount {
  readonly address: string
  readonly private_key: string
  readonly user_id: number
  readonly api_key: string
}

export interface StackFile {
  readonly base_url: string
  /** URL of the live feed. */
  readonly ws_url: string
  /** The identity provider: a page to sign in with a wallet, and its OpenID configuration. */
  readonly issuer_url: string
  readonly rpc_url: string
  readonly chain_id: number
  readonly contracts: {
    readonly usdm: string
    readonly margin_bank: string
    readonly account_manager: string
    readonly forwarder: string
  }
  readonly markets: readonly {
    readonly market_id: number
    readonly symbol: string
    readonly type: string
    readonly trader_address: string
  }[]
  readonly accounts: readonly StackAccount[]
}

/** Throws if the file does not exist: the stack deletes it when it starts and writes it when it is ready. */
export function readStackFile(path: string): StackFile {
  const file = readJson<StackFile>(path)
  if (file === null)
    throw new StackError(
      `${path} does not exist: start the stack with npm start, or pass the file with --stack`,
    )
  return file
}
