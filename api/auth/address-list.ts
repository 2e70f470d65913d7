/** Lists of IP addresses and networks, from which an API key is accepted. */
import { BlockList, isIP } from 'node:net'

/** An IP address, or one with a prefix length of at least 1. IPv4 addresses are written as such, without a zone. */
export function isNetwork(text: string): boolean {
  const [address = '', prefix, ...more] = text.split('/')
  const bits = { 0: 0, 4: 32, 6: 128 }[isIP(address)] ?? 0
  if (bits === 0 || more.length > 0 || /[%]|^::ffff:[\d.]+$/i.test(address)) return false
  return prefix === undefined || (/^\d{1,3}$/.test(prefix) && Number(prefix) >= 1 && Number(prefix) <= bits)
}

const familyOf = (address: string): 'ipv4' | 'ipv6' => (isIP(address) === 4 ? 'ipv4' : 'ipv6')

export type AllowsAddress = (address: string) => boolean

/** Null allows every address. An address that is no IP address, such as a forged one, is in no list. */
export function allowsAddress(list: readonly string[] | null): AllowsAddress {
  if (list === null) return () => true
  const networks = new BlockList()
  for (const entry of list) {
    const [address = '', prefix] = entry.split('/')
    if (prefix === undefined) networks.addAddress(address, familyOf(address))
    else networks.addSubnet(address, Number(prefix), familyOf(address))
  }
  return (address) => isIP(address) !== 0 && networks.check(address, familyOf(address))
}
