/** The network that limits are counted for: an IPv4 address, or the /64 of an IPv6 address. */
import { normalizeIP } from '@fastify/rate-limit'

/** Addresses are the clients' choice: beyond this number all are forgotten. */
const MOST = 10_000
/** Characters of the longest IPv6 address without a zone. A proxy may forward anything as an address; what is longer is not kept. */
const LONGEST = 45

/** `compute`, which keeps its results: for a cheap request, computing costs as much as the rest. */
export function keptByAddress<Value extends object | string>(
  compute: (ip: string) => Value,
): (ip: string) => Value {
  const known = new Map<string, Value>()
  return (ip) => {
    const found = known.get(ip)
    if (found !== undefined) return found
    const value = compute(ip)
    if (ip.length > LONGEST) return value
    if (known.size >= MOST) known.clear()
    known.set(ip, value)
    return value
  }
}

const networkOfIpv6 = keptByAddress(normalizeIP)

export const networkOf = (ip: string): string => (ip.includes(':') ? networkOfIpv6(ip) : normalizeIP(ip))
