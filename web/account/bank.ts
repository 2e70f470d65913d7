/** Collateral by transactions of the owner's wallet: deposit by permit, withdrawal in two steps. */
import { keccak_256 } from '@noble/hashes/sha3.js'
import { utf8ToBytes } from '@noble/hashes/utils.js'
import { waitFor } from '../../client/wait-for.ts'
import { toHex } from '../../domain/hex.ts'
import { config } from '../base/config.ts'
import { marketData } from '../feed/exchange.ts'
import { type ConnectedWallet, ownerWallet, requireChain } from './wallet.ts'

const selector = (signature: string): string => toHex(keccak_256(utf8ToBytes(signature))).slice(0, 10)
const word = (value: bigint | string): string => BigInt(value).toString(16).padStart(64, '0')
const call = (signature: string, ...values: readonly (bigint | string)[]): string =>
  selector(signature) + values.map(word).join('')

const PERMIT_LIFE_S = 600
const RECEIPT_MS = 60_000

async function owner(): Promise<ConnectedWallet> {
  const connected = await ownerWallet()
  const { chain_id } = await marketData.contracts()
  await requireChain(connected, chain_id, config.rpcUrls)
  return connected
}

async function read({ provider }: ConnectedWallet, to: string, data: string): Promise<string> {
  return (await provider.request({ method: 'eth_call', params: [{ to, data }, 'latest'] })) as string
}

interface Receipt {
  readonly status: string
}

/** Returns the hash once the transaction is mined. Throws if it was reverted. */
async function send({ provider, address }: ConnectedWallet, to: string, data: string): Promise<string> {
  const hash = (await provider.request({
    method: 'eth_sendTransaction',
    params: [{ from: address, to, data }],
  })) as string
  const receipt = await waitFor(
    () =>
      provider.request({ method: 'eth_getTransactionReceipt', params: [hash] }) as Promise<Receipt | null>,
    (found) => found !== null,
    { budgetMs: RECEIPT_MS, everyMs: 300 },
  )
  if (receipt?.status !== '0x1') throw new Error(`transaction ${hash} was reverted`)
  return hash
}

const textOf = (answer: string): string => {
  const bytes = answer.slice(2)
  const length = Number(BigInt(`0x${bytes.slice(64, 128)}`)) * 2
  const codes = bytes.slice(128, 128 + length).match(/../g) ?? []
  return new TextDecoder().decode(Uint8Array.from(codes, (code) => Number.parseInt(code, 16)))
}

const field = (name: string, type: string) => ({ name, type })

async function signPermit(
  wallet: ConnectedWallet,
  token: string,
  spender: string,
  value: bigint,
  chainId: number,
) {
  const [name, nonce] = await Promise.all([
    read(wallet, token, call('name()')),
    read(wallet, token, call('nonces(address)', wallet.address)),
  ])
  const deadline = BigInt(Math.floor(Date.now() / 1000) + PERMIT_LIFE_S)
  const typed = {
    types: {
      EIP712Domain: [
        field('name', 'string'),
        field('version', 'string'),
        field('chainId', 'uint256'),
        field('verifyingContract', 'address'),
      ],
      Permit: [
        field('owner', 'address'),
        field('spender', 'address'),
        field('value', 'uint256'),
        field('nonce', 'uint256'),
        field('deadline', 'uint256'),
      ],
    },
    primaryType: 'Permit',
    domain: { name: textOf(name), version: '1', chainId, verifyingContract: token },
    message: {
      owner: wallet.address,
      spender,
      value: String(value),
      nonce: String(BigInt(nonce)),
      deadline: String(deadline),
    },
  }
  const params = [wallet.address, JSON.stringify(typed)]
  const signature = (await wallet.provider.request({ method: 'eth_signTypedData_v4', params })) as string
  const [r, s, v] = [signature.slice(2, 66), signature.slice(66, 130), signature.slice(130, 132)]
  return { deadline, r: `0x${r}`, s: `0x${s}`, v: `0x${v}` }
}

/** One signature and one transaction. */
export async function deposit(value: bigint): Promise<string> {
  const wallet = await owner()
  const { addressCollateralToken: token, addressMarginBank: bank, chain_id } = await marketData.contracts()
  const { deadline, v, r, s } = await signPermit(wallet, token, bank, value, chain_id)
  const data = call('depositWithPermit(uint256,uint256,uint8,bytes32,bytes32)', value, deadline, v, r, s)
  return send(wallet, bank, data)
}

export async function requestWithdrawal(value: bigint): Promise<string> {
  const wallet = await owner()
  const { addressMarginBank } = await marketData.contracts()
  return send(wallet, addressMarginBank, call('requestWithdrawal(uint256)', value))
}

export async function withdraw(): Promise<string> {
  const wallet = await owner()
  const { addressMarginBank } = await marketData.contracts()
  return send(wallet, addressMarginBank, call('withdraw()'))
}

/** The token that the wallet holds outside the exchange. */
export async function walletBalance(): Promise<bigint> {
  const wallet = await ownerWallet()
  const { addressCollateralToken } = await marketData.contracts()
  return BigInt(await read(wallet, addressCollateralToken, call('balanceOf(address)', wallet.address)))
}
