/** A bank over tokens with other behaviour than the exchange's own token. */
import type { Wallet } from 'ethers'
import { Signature } from 'ethers'
import { LATCH_WEI } from '../../../stack/deploy.ts'
import { ExchangeAccess__factory } from '../../../typechain-types/factories/ExchangeAccess__factory.ts'
import { MarginBank__factory } from '../../../typechain-types/factories/MarginBank__factory.ts'
import { FeeToken__factory } from '../../../typechain-types/factories/mocks/FeeToken__factory.ts'
import { HostileToken__factory } from '../../../typechain-types/factories/mocks/HostileToken__factory.ts'
import { NoReturnToken__factory } from '../../../typechain-types/factories/mocks/NoReturnToken__factory.ts'
import { TestUSDM__factory } from '../../../typechain-types/factories/TestUSDM__factory.ts'
import type { TestUSDM } from '../../../typechain-types/TestUSDM.ts'
import { chain, firstSigner, wallet } from '../../support/exchange.ts'

/** By behaviour: the token, and the part of a transferred amount that arrives. */
export const MODELS = {
  standard: { factory: TestUSDM__factory, arrives: (amount: bigint) => amount },
  'without return values': { factory: NoReturnToken__factory, arrives: (amount: bigint) => amount },
  'with a fee on transfers': {
    factory: FeeToken__factory,
    arrives: (amount: bigint) => amount - amount / 10n,
  },
  hostile: { factory: HostileToken__factory, arrives: (amount: bigint) => amount },
} as const

/** A bank over a new token, and an owner with gas and `amount` of the token. */
export async function bankOver<Token extends TestUSDM>(
  Factory: new (runner: Awaited<ReturnType<typeof firstSigner>>) => { deploy(): Promise<Token> },
  amount: bigint,
) {
  const connection = await chain()
  const admin = await firstSigner(connection)
  const token = await new Factory(admin).deploy()
  const access = await new ExchangeAccess__factory(admin).deploy(admin, 0)
  const bank = await new MarginBank__factory(admin).deploy(token, access, admin, 0, { value: LATCH_WEI })
  const owner = wallet('token owner').connect(connection.ethers.provider)
  await connection.networkHelpers.setBalance(owner.address, 10n ** 18n)
  await token.mint(owner.address, amount)
  const time = connection.networkHelpers.time
  return { token, bank, access, admin, owner, time, asOwner: bank.connect(owner) }
}

/** The owner's EIP-2612 permit for `spender` to transfer `value`. */
export async function permitOf(
  token: TestUSDM,
  owner: Wallet,
  { spender, value, deadline }: { spender: string; value: bigint; deadline: bigint },
): Promise<Signature> {
  const { name, version, chainId, verifyingContract } = await token.eip712Domain()
  const Permit = [
    'owner address',
    'spender address',
    'value uint256',
    'nonce uint256',
    'deadline uint256',
  ].map((field) => ({ name: field.split(' ')[0] as string, type: field.split(' ')[1] as string }))
  const nonce = await token.nonces(owner.address)
  const message = { owner: owner.address, spender, value, nonce, deadline }
  return Signature.from(
    await owner.signTypedData({ name, version, chainId, verifyingContract }, { Permit }, message),
  )
}
