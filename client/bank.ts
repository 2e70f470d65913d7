/** The trader's own transactions: his collateral moves by his key alone, never through the exchange. */
import { Contract, type ContractTransactionReceipt, type Signer } from 'ethers'

const TOKEN = [
  'function approve(address spender, uint256 amount) returns (bool)',
  'function allowance(address owner, address spender) view returns (uint256)',
  'function balanceOf(address owner) view returns (uint256)',
] as const
const BANK = [
  'function deposit(uint256 amount)',
  'function requestWithdrawal(uint256 amount)',
  'function withdraw()',
] as const

export interface BankAddresses {
  readonly token: string
  readonly bank: string
}

/** Approves where the allowance does not do already, then deposits. Returns the deposit's transaction. */
export async function deposit(
  signer: Signer,
  { token, bank }: BankAddresses,
  amount: bigint,
): Promise<string> {
  const collateral = new Contract(token, TOKEN, signer)
  const allowance = (await collateral.getFunction('allowance')(await signer.getAddress(), bank)) as bigint
  if (allowance < amount) await mined(collateral, 'approve', bank, amount)
  return mined(new Contract(bank, BANK, signer), 'deposit', amount)
}

/** What it takes out of the free balance is paid by `withdraw` after the bank's delay. */
export const requestWithdrawal = (signer: Signer, { bank }: BankAddresses, amount: bigint): Promise<string> =>
  mined(new Contract(bank, BANK, signer), 'requestWithdrawal', amount)

export const withdraw = (signer: Signer, { bank }: BankAddresses): Promise<string> =>
  mined(new Contract(bank, BANK, signer), 'withdraw')

async function mined(contract: Contract, method: string, ...args: readonly unknown[]): Promise<string> {
  const sent = await contract.getFunction(method)(...args)
  const receipt = (await sent.wait()) as ContractTransactionReceipt
  return receipt.hash
}
