/** `<data-dir>/stack.json`: what a program needs to know of a running stack. Written when it is ready. */
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
  readonly ws_url: string
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

/** Reads the file of a stack that should be running. */
export function readStackFile(path: string): StackFile {
  const file = readJson<StackFile>(path)
  if (file === null)
    throw new StackError(`there is no ${path}: start the stack first, or name its file with --stack`)
  return file
}
