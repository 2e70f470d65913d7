/** The network by which limits count requests: an IPv4 address, or the /64 of an IPv6 address. */
import { normalizeIP } from '@fastify/rate-limit'

/** Clients choose their addresses. Beyond this number of kept results all are dropped. */
const MOST = 10_000
/** Characters of the longest IPv6 address without a zone. A proxy may forward any text as an address; results for longer texts are not kept. */
const LONGEST = 45

/** Returns `compute` with a cache: without it, computing costs as much as the rest of a cheap request. */
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

/** An address to which a proxy has appended the port of the connection, for example `192.0.2.1:443` or `[2001:db8::1]:443`. */
const WITH_PORT = /^(?:(\d+\.\d+\.\d+\.\d+):\d+|\[([^\]]+)\](?::\d+)?)$/

/** Removes the port: with it, each connection of a client would count as another address. */
function withoutPort(ip: string): string {
  const [, ipv4, ipv6] = WITH_PORT.exec(ip) ?? []
  return ipv4 ?? ipv6 ?? ip
}

export const networkOf = keptByAddress((ip) => normalizeIP(withoutPort(ip)))
