/** Deposits: by which transactions the bank receives the right to move the tokens. */
import { expect } from 'chai'
import {
  AbiCoder,
  Interface,
  keccak256,
  Transaction,
  TypedDataEncoder,
  toBeHex,
  verifyTypedData,
} from 'ethers'
import { describe, it } from 'mocha'
import type { Account } from '../../client/account.ts'
import { Bank } from '../../client/bank.ts'
import type { HttpSession } from '../../client/http-session.ts'
import type { MarketData } from '../../client/market-data.ts'
import { privateKeySigner } from '../../client/signers/private-key-signer.ts'

const CHAIN_ID = 6343
const [TOKEN, BANK] = [`0x${'aa'.repeat(20)}`, `0x${'bb'.repeat(20)}`]
const OWNER = privateKeySigner(`0x${'11'.repeat(32)}`)
const ABI = new Interface([
  'function allowance(address,address) view returns (uint256)',
  'function balanceOf(address) view returns (uint256)',
  'function nonces(address) view returns (uint256)',
  'function name() view returns (string)',
  'function DOMAIN_SEPARATOR() view returns (bytes32)',
  'function approve(address,uint256)',
  'function deposit(uint256)',
  'function depositWithPermit(uint256,uint256,uint8,bytes32,bytes32)',
])
const DOMAIN = { name: 'USDM', version: '1', chainId: CHAIN_ID, verifyingContract: TOKEN }
const PERMIT = {
  Permit: ['owner address', 'spender address', 'value uint256', 'nonce uint256', 'deadline uint256'].map(
    (field) => {
      const [name = '', type = ''] = field.split(' ')
      return { name, type }
    },
  ),
}

interface ChainOptions {
  readonly allowance?: bigint
  /** Code of the account. */
  readonly code?: string
  /** The separator of the token's domain; null for a token without permits. */
  readonly separator?: string | null
}

/** A node whose token has these answers, and the transactions that it was sent. */
function chainOf({
  allowance = 0n,
  code = '0x',
  separator = TypedDataEncoder.hashDomain(DOMAIN),
}: ChainOptions) {
  const sent: Transaction[] = []
  const views: Readonly<Record<string, readonly [string, unknown] | null>> = {
    allowance: ['uint256', allowance],
    balanceOf: ['uint256', 10n ** 21n],
    nonces: ['uint256', 7],
    name: ['string', DOMAIN.name],
    DOMAIN_SEPARATOR: separator === null ? null : ['bytes32', separator],
  }
  function view(data: string): unknown {
    const answer = views[ABI.getFunction(data.slice(0, 10))?.name ?? ''] ?? null
    if (answer === null) throw new Error('execution reverted')
    return AbiCoder.defaultAbiCoder().encode([answer[0]], [answer[1]])
  }
  function result(method: string, [first]: readonly unknown[]): unknown {
    if (method === 'eth_call') return view((first as { data: string }).data)
    if (method === 'eth_sendRawTransaction') {
      sent.push(Transaction.from(first as string))
      return keccak256(first as string)
    }
    const numbers = { eth_chainId: CHAIN_ID, eth_getTransactionCount: sent.length, eth_estimateGas: 100_000 }
    if (method === 'eth_getCode') return code
    if (method === 'eth_getBlockByNumber') return { baseFeePerGas: '0x1' }
    if (method === 'eth_getTransactionReceipt') return { transactionHash: first, status: '0x1' }
    return toBeHex(numbers[method as keyof typeof numbers] ?? 1)
  }
  const answer: typeof fetch = async (_url, init) => {
    const { id, method, params } = JSON.parse(String(init?.body))
    try {
      return Response.json({ jsonrpc: '2.0', id, result: result(method, params) })
    } catch (error) {
      return Response.json({ jsonrpc: '2.0', id, error: { message: (error as Error).message } })
    }
  }
  return { sent, answer }
}

async function deposited(options: ChainOptions) {
  const { sent, answer } = chainOf(options)
  const account = {
    transactions: async () => sent.map(({ hash }) => ({ tx_hash: hash })),
    balance: async () => ({ free: 2.5 }),
  } as unknown as Account
  const contracts = { addressCollateralToken: TOKEN, addressMarginBank: BANK, chain_id: CHAIN_ID }
  const bank = new Bank({
    http: {} as HttpSession,
    account,
    marketData: { contracts: async () => contracts } as unknown as MarketData,
    signer: OWNER,
    rpcUrl: 'http://node',
    fetch: answer,
  })
  const { paid_by } = await bank.deposit('2.5')
  const calls = sent.map(({ to, data }) => ({ to: to?.toLowerCase(), call: ABI.parseTransaction({ data }) }))
  return { paid_by, calls, names: calls.map(({ call }) => call?.name) }
}

describe('client/bank', () => {
  it('when the token has permits, it deposits in one transaction with a permit of the owner for the bank', async () => {
    const { paid_by, calls, names } = await deposited({})
    expect([paid_by, names]).to.deep.equal(['permit', ['depositWithPermit']])
    const [value, deadline, v, r, s] = calls[0]?.call?.args ?? []
    const message = { owner: OWNER.address, spender: BANK, value, nonce: 7, deadline }
    expect(verifyTypedData(DOMAIN, PERMIT, message, { v: Number(v), r, s })).to.equal(OWNER.address)
    expect([calls[0]?.to, value]).to.deep.equal([BANK, 25n * 10n ** 17n])
  })

  for (const [title, options] of [
    ['has no permit', { separator: null }],
    ['has a domain that is not known', { separator: `0x${'00'.repeat(32)}` }],
  ] as const)
    it(`when the token ${title}, it approves the amount and deposits`, async () => {
      const { paid_by, calls, names } = await deposited(options)
      expect([paid_by, names]).to.deep.equal(['approval', ['approve', 'deposit']])
      expect(calls.map(({ to }) => to)).to.deep.equal([TOKEN, BANK])
      const [spender, value] = calls[0]?.call?.args ?? []
      expect([spender.toLowerCase(), value]).to.deep.equal([BANK, 25n * 10n ** 17n])
    })

  it('when the account is a contract, it approves, and one that delegates its code (EIP-7702) still signs a permit', async () => {
    expect((await deposited({ code: '0x6080' })).names).to.deep.equal(['approve', 'deposit'])
    expect((await deposited({ code: `0xef0100${'cc'.repeat(20)}` })).names).to.deep.equal([
      'depositWithPermit',
    ])
  })

  it('when the allowance is enough, it deposits without another right', async () => {
    const { paid_by, names } = await deposited({ allowance: 25n * 10n ** 17n })
    expect([paid_by, names]).to.deep.equal(['allowance', ['deposit']])
  })
})
