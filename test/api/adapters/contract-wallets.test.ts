import { expect } from 'chai'
import { Wallet } from 'ethers'
import { after, before, beforeEach, describe, it } from 'mocha'
import { createContractWallets } from '../../../api/adapters/contract-wallets.ts'
import type { AcceptsSignature } from '../../../api/ports.ts'
import type { Address, Millis } from '../../../domain/units.ts'
import { useAnvil } from '../../support/anvil.ts'
import { type RpcProxy, startRpcProxy } from '../../support/rpc-proxy.ts'

/** Accepts every signature whose first byte is 2a. */
const WALLET_CODE = '0x60643560001a602a14631626ba7e60e01b0260005260206000f3'
const DIGEST = new Uint8Array(32).fill(7)
const VALID = `0x2a${'11'.repeat(64)}`
const WRONG = `0x${'11'.repeat(65)}`

describe('contract wallets', () => {
  const chain = useAnvil()
  const clock = { value: 1_800_000_000_000, now: () => clock.value as Millis }
  let node: RpcProxy
  let asked: string[]
  let accepts: AcceptsSignature

  before(async () => {
    node = await startRpcProxy(chain.url, (method, result) => {
      asked.push(method)
      return result
    })
  })
  beforeEach(() => {
    asked = []
    clock.value += 1_000
    accepts = createContractWallets(node.url, clock)
  })
  after(() => node.close())

  const anyOwner = (): Address => Wallet.createRandom().address.toLowerCase() as Address
  async function deployAt(owner: Address): Promise<Address> {
    const body = { jsonrpc: '2.0', id: 1, method: 'anvil_setCode', params: [owner, WALLET_CODE] }
    await fetch(chain.url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    return owner
  }
  const isAccepted = (owner: Address, signature = VALID): Promise<boolean> =>
    accepts(owner, DIGEST, signature)
  const codeOf = (refused: { code: string }): string => refused.code

  it('when an account without code repeats wrong signatures, the node is asked once, for its code', async () => {
    const owner = anyOwner()
    for (let n = 0; n < 40; n++) expect(await isAccepted(owner, WRONG)).to.equal(false)
    expect(asked).to.deep.equal(['eth_getCode'])
  })

  it('when an account has code, the node is asked for its code once and about every signature', async () => {
    const wallet = await deployAt(anyOwner())
    expect([await isAccepted(wallet), await isAccepted(wallet, WRONG)]).to.deep.equal([true, false])
    expect(asked).to.deep.equal(['eth_getCode', 'eth_call', 'eth_call'])
  })

  it('when accounts without code use up the lookups of a second, a known wallet is still accepted', async () => {
    const wallet = await deployAt(anyOwner())
    expect(await isAccepted(wallet)).to.equal(true)
    for (let n = 0; n < 19; n++) expect(await isAccepted(anyOwner(), WRONG)).to.equal(false)
    expect(await isAccepted(anyOwner(), WRONG).catch(codeOf)).to.equal('WALLET_CHECK_UNAVAILABLE')
    expect(await isAccepted(wallet)).to.equal(true)
  })

  it('when a wallet is deployed after its account had no code, it is accepted half a minute later', async () => {
    const owner = anyOwner()
    expect(await isAccepted(owner)).to.equal(false)
    await deployAt(owner)
    expect(await isAccepted(owner)).to.equal(false)
    clock.value += 30_000
    expect(await isAccepted(owner)).to.equal(true)
  })
})
