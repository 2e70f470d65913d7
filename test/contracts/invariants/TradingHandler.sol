// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";
import {IMarginBank} from "../../../contracts/interfaces/IMarginBank.sol";
import {ISettlementErrors} from "../../../contracts/interfaces/ISettlementErrors.sol";
import {MarketKind} from "../../../contracts/types/Market.sol";
import {SaltState} from "../../../contracts/types/Order.sol";
import {Position} from "../../../contracts/types/Position.sol";
import {Clock, Reference} from "../../../contracts/types/TraderState.sol";
import {Leg, Listing, ExchangeFixture} from "./ExchangeFixture.sol";
import {clockOf, positionOf, referenceOf} from "./MarketStorage.sol";
import {holds, same, vm, within} from "./Vm.sol";

/**
 * @title Trading in random batches
 * @notice A part settles or reverts for a reason that the test can verify; any other revert ends the run. State that a part
 * must not change is checked after each part.
 */
contract TradingHandler is ExchangeFixture {
    // ------------------------------------------------------------------ state

    /// @notice An order with an unfilled rest; its quantity is 0 if there is none.
    struct RestingOrder {
        Leg leg;
        uint256 filled;
    }

    struct Snapshot {
        int256[HOLDERS] folded;
        Position[HOLDERS] positions;
        uint256[HOLDERS] ledger;
        Clock clock;
        Reference last;
    }

    uint256 private constant CANCEL_GRACE_SECONDS = 5;
    uint256 private constant MOST_STEPS = 1_000;
    uint256 private constant SLOTS = 3;

    /// @notice Parts sent by `trade`, and how many of them settled.
    uint256 public sentParts;
    uint256 public settledParts;
    uint256 internal _oracleTicks;
    uint256 internal _salts;
    uint256 internal _draws;
    /// @dev By actor and slot: an order occupies the slot that its record names.
    RestingOrder[SLOTS][ACTORS] private _resting;

    constructor(Listing memory listed) ExchangeFixture(listed) {
        _oracleTicks = listed.start;
    }

    // ------------------------------------------------------------------ steps

    /// @notice One batch of two to four orders, in one part or two.
    function trade(uint256 seed) external {
        seed = uint256(keccak256(abi.encode(seed, ++_draws)));
        Head memory head = _nextHead();
        // The market accepts only one price per observation time.
        bool isNew = head.asOf != referenceOf(address(trader)).observedAt;
        uint256 oracleTicks = isNew ? _near(_oracleTicks, seed, 16) : _oracleTicks;
        head.oraclePrice = oracleTicks * listing.tick;
        head.price = _near(oracleTicks, seed, 32);
        bool inParts = seed % 5 == 0;
        if (inParts) head.parts = 2;
        if (!_trade(head, _draw(head.price, seed)) || !inParts) return;
        // The second part may be left out: the next batch closes the first.
        if (seed % 3 == 0) return;
        head.part = 2;
        head.actionId += 1;
        _trade(head, _draw(head.price, seed >> 7));
    }

    function _trade(Head memory head, Leg[] memory legs) private returns (bool done) {
        ++sentParts;
        (done,) = _settle(head, legs);
        if (done) ++settledParts;
    }

    /// @notice A maker cancels the rest of an order: after CANCEL_GRACE it never fills again.
    function cancel(uint256 seed) external {
        RestingOrder memory rest = _removeResting(seed % ACTORS, (seed >> 8) % SLOTS);
        if (rest.leg.quantity == 0) return;
        uint64[] memory salts = new uint64[](1);
        salts[0] = uint64(rest.leg.salt);
        vm.prank(actor(rest.leg.actor));
        trader.cancelSalts(salts);
        _expectCancelled(rest);
    }

    /// @notice A maker cancels every order signed so far.
    function cancelAll(uint256 seed) external {
        uint256 actorIndex = seed % ACTORS;
        vm.prank(actor(actorIndex));
        trader.cancelSaltsBelow(_salts + 1);
        RestingOrder memory last;
        for (uint256 slot; slot < SLOTS; ++slot) {
            RestingOrder memory rest = _removeResting(actorIndex, slot);
            if (rest.leg.quantity != 0) last = rest;
        }
        if (last.leg.quantity != 0) _expectCancelled(last);
    }

    function _expectCancelled(RestingOrder memory rest) private {
        vm.warp(block.timestamp + CANCEL_GRACE_SECONDS + 3);
        uint256 reach = _oracleTicks / 25;
        if (rest.leg.limit + reach < _oracleTicks || rest.leg.limit > _oracleTicks + reach) return;
        Leg[] memory legs = new Leg[](2);
        legs[0] = rest.leg;
        legs[0].fill = 1;
        legs[0].taker = 1;
        legs[1] = _fresh((rest.leg.actor + 1) % ACTORS, !rest.leg.buy, 1, rest.leg.limit, 1);
        Head memory head = _nextHead();
        head.price = rest.leg.limit;
        head.oraclePrice = _oracleTicks * listing.tick;
        _expectRevert(_encode(head, legs), ISettlementErrors.OrderCancelled.selector);
    }

    // ------------------------------------------------------------------ settling

    /// @dev Sends a part and checks its effects, or the reason of its revert.
    function _settle(Head memory head, Leg[] memory legs) internal returns (bool done, bytes4 refusal) {
        bytes memory part = _encode(head, legs);
        Snapshot memory before = _snapshot();
        try trader.settleBatch(part) {}
        catch (bytes memory reason) {
            _checkRevertReason(reason, legs, head.price);
            return (false, bytes4(reason));
        }
        _oracleTicks = head.oraclePrice / listing.tick;
        Snapshot memory after_ = _snapshot();
        _checkTime(before, after_, head.asOf);
        _checkAccounts(before, after_, head, legs);
        for (uint256 i; i < legs.length; ++i) if (!legs[i].forced) _checkOrder(legs[i], head.batchId);
        _expectRevert(part, ISettlementErrors.ActionOutOfOrder.selector);
        return (true, 0);
    }

    function _expectRevert(bytes memory part, bytes4 expected) internal {
        try trader.settleBatch(part) {
            holds("the part must revert", false);
        } catch (bytes memory reason) {
            if (bytes4(reason) != expected) _bubble(reason);
        }
    }

    /// @dev Reverts that an honest operator can encounter: an account that cannot pay, or a pool that owes more than it holds,
    /// which requires an account whose loss exceeds its margin.
    function _checkRevertReason(bytes memory reason, Leg[] memory legs, uint256 price) private view {
        bytes4 selector = bytes4(reason);
        if (selector == IMarginBank.PoolInsufficient.selector) return holds("an account is insolvent", _anyInsolvent(price));
        if (
            selector != ISettlementErrors.MarginInsufficient.selector
                && selector != ISettlementErrors.ProceedsNegative.selector
                && !(legs[0].forced && selector == ISettlementErrors.NotLiquidatable.selector)
                && selector != IMarginBank.FreeBalanceInsufficient.selector
        ) _bubble(reason);
        address named;
        assembly ("memory-safe") {
            named := mload(add(reason, 36))
        }
        for (uint256 i; i < legs.length; ++i) if (actor(legs[i].actor) == named) return;
        holds("a revert names a party", false);
    }

    function _bubble(bytes memory reason) internal pure {
        assembly ("memory-safe") {
            revert(add(reason, 32), mload(reason))
        }
    }

    function _anyInsolvent(uint256 price) private view returns (bool) {
        for (uint256 i; i < HOLDERS; ++i) {
            (int256 equity,) = trader.health(holder(i), price * listing.tick);
            if (equity < 0) return true;
        }
        return false;
    }

    // ------------------------------------------------------------------ allowed effects of a part

    function _snapshot() internal view returns (Snapshot memory taken) {
        taken.clock = clockOf(address(trader));
        taken.last = referenceOf(address(trader));
        for (uint256 i; i < HOLDERS; ++i) {
            Position memory held = positionOf(address(trader), holder(i), taken.last.fundingIndex);
            taken.positions[i] = held;
            taken.folded[i] = held.margin + held.size * taken.last.fundingIndex;
            IMarginBank.Account memory entry = bank.account(holder(i));
            taken.ledger[i] = uint256(entry.free) + entry.pending;
        }
    }

    /// @dev noTimeTravel.
    function _checkTime(Snapshot memory before, Snapshot memory after_, uint256 asOf) internal pure {
        (Clock memory clock, Reference memory last) = (after_.clock, after_.last);
        same("actionId increases by one", int48(before.clock.actionId) + 1, int48(clock.actionId));
        holds("asOf never decreases", clock.asOf >= before.clock.asOf && clock.asOf == asOf);
        holds("report times never decrease", last.observedAt >= before.last.observedAt);
        holds("batch numbers never decrease", clock.batchId >= before.clock.batchId);
    }

    /// @dev othersUnchanged for accounts outside the part, riskReducingOrHealthy for parties.
    function _checkAccounts(Snapshot memory before, Snapshot memory after_, Head memory head, Leg[] memory legs)
        private
        view
    {
        for (uint256 i; i < HOLDERS; ++i) {
            if (_isParty(i, legs)) {
                // Funding that accrued before the trade is not an effect of the trade.
                Position memory held = before.positions[i];
                held.margin = before.folded[i] - held.size * after_.last.fundingIndex;
                _checkHealth(held, after_.positions[i], head.oraclePrice);
            } else {
                _checkUntouched(i, before, after_);
            }
        }
    }

    function _checkUntouched(uint256 actorIndex, Snapshot memory before, Snapshot memory after_) internal pure {
        same("othersUnchanged: ledger", int256(before.ledger[actorIndex]), int256(after_.ledger[actorIndex]));
        same("othersUnchanged: size", before.positions[actorIndex].size, after_.positions[actorIndex].size);
        same("othersUnchanged: folded margin", before.folded[actorIndex], after_.folded[actorIndex]);
    }

    function _isParty(uint256 actorIndex, Leg[] memory legs) private pure returns (bool) {
        for (uint256 i; i < legs.length; ++i) if (legs[i].actor == actorIndex) return true;
        return false;
    }

    function _checkHealth(Position memory before, Position memory held, uint256 oraclePrice) private view {
        (int256 equity, int256 notional) = _exposure(held, oraclePrice);
        if (equity * 1e6 >= notional * int256(uint256(listing.imr))) return;
        holds("riskReducingOrHealthy: same side", held.size == 0 || (held.size > 0) == (before.size > 0));
        holds("riskReducingOrHealthy: not grown", _size(held) <= _size(before));
        (int256 equityBefore, int256 notionalBefore) = _exposure(before, oraclePrice);
        holds("riskReducingOrHealthy: ratio not worse", !_lessThan(equity, notional, equityBefore, notionalBefore));
    }

    /// @dev a / b < c / d for positive b and d, in 512 bits.
    function _lessThan(int256 a, int256 b, int256 c, int256 d) private pure returns (bool) {
        if ((a < 0) != (c < 0)) return a < 0;
        (uint256 highLeft, uint256 left) = Math.mul512(uint256(a < 0 ? -a : a), uint256(d));
        (uint256 highRight, uint256 right) = Math.mul512(uint256(c < 0 ? -c : c), uint256(b));
        bool isLess = highLeft < highRight || (highLeft == highRight && left < right);
        bool isMore = highLeft > highRight || (highLeft == highRight && left > right);
        return a < 0 ? isMore : isLess;
    }

    /// @dev Equity and notional x 1e18, computed independently of the contract.
    function _exposure(Position memory held, uint256 price) internal view returns (int256 equity, int256 notional) {
        int256 sign = held.size < 0 ? int256(-1) : int256(1);
        int256 value = held.size * sign * int256(price * listing.step);
        equity = held.margin * 1e18 + sign * (value - int256(held.entryNotional) * 1e18);
        bool mirrored = listing.kind == MarketKind.BinaryFuture && held.size < 0;
        notional = mirrored ? held.size * sign * int256(listing.step) * 1e18 - value : value;
    }

    function _size(Position memory held) internal pure returns (int256) {
        return held.size < 0 ? -held.size : held.size;
    }

    /// @dev fillWithinSignature, for the rest of an order.
    function _checkOrder(Leg memory leg, uint256 batchId) private {
        address maker = actor(leg.actor);
        uint256 filled = _filledBefore(leg) + leg.fill;
        holds("fillWithinSignature: quantity", filled <= leg.quantity);
        bool dead = filled == leg.quantity || (leg.limit == 0 && leg.slot == NO_SLOT);
        SaltState expected = dead ? SaltState.Dead : SaltState.PartlyFilled;
        holds("fillWithinSignature: state", trader.saltState(maker, leg.salt) == expected);
        if (dead) return;
        (uint256 salt, uint256 held, uint256 batch) = trader.partialSlot(maker, leg.slot);
        holds("fillWithinSignature: slot", salt == leg.salt && held == filled && batch == batchId);
        uint256 other = _resting[leg.actor][leg.slot].leg.salt;
        if (other != 0 && other != leg.salt) {
            holds("the order of a reused slot is dead", trader.saltState(maker, other) == SaltState.Dead);
        }
        // An order without a limit fills in no later batch.
        if (leg.limit == 0) delete _resting[leg.actor][leg.slot];
        else _resting[leg.actor][leg.slot] = RestingOrder(leg, filled);
    }

    /// @dev The quantity filled before; the caller stores the order again if a rest remains.
    function _filledBefore(Leg memory leg) private returns (uint256) {
        if (leg.slot == NO_SLOT || _resting[leg.actor][leg.slot].leg.salt != leg.salt) return 0;
        return _removeResting(leg.actor, leg.slot).filled;
    }

    function _removeResting(uint256 actorIndex, uint256 slot) private returns (RestingOrder memory taken) {
        if (_resting[actorIndex][slot].leg.quantity == 0) return taken;
        taken = _resting[actorIndex][slot];
        delete _resting[actorIndex][slot];
    }

    // ------------------------------------------------------------------ random input

    /// @dev A price up to 4 % away, on the grid and within the clearing range of the market.
    function _near(uint256 ticks, uint256 seed, uint256 shift) internal view returns (uint256) {
        if (listing.steady) return ticks;
        uint256 reach = ticks / 25;
        uint256 near = ticks - reach + within(seed >> shift, 0, 2 * reach);
        uint256 top = listing.kind == MarketKind.BinaryFuture ? 1e18 / listing.tick - 1 : 20 * listing.start;
        return near < 1 ? 1 : near > top ? top : near;
    }

    /// @dev Two to four adjacent actors: the first ones buy, the others sell the same quantity.
    function _draw(uint256 price, uint256 seed) private returns (Leg[] memory legs) {
        uint256 count = within(seed >> 40, 2, 4);
        uint256 buyers = within(seed >> 48, 1, count - 1);
        uint256 total = within(seed >> 56, count, MOST_STEPS);
        uint256 taker = within(seed >> 72, 0, total);
        legs = new Leg[](count);
        _side(legs, 0, buyers, Side(true, total, taker, price, seed));
        _side(legs, buyers, count, Side(false, total, total - taker, price, seed));
    }

    struct Side {
        bool buy;
        uint256 left;
        uint256 taker;
        uint256 price;
        uint256 seed;
    }

    function _side(Leg[] memory legs, uint256 from, uint256 end, Side memory side) private {
        for (uint256 i = from; i < end; ++i) {
            uint256 random = uint256(keccak256(abi.encode(side.seed, i)));
            uint256 after_ = end - 1 - i;
            uint256 fill = after_ == 0 ? side.left : within(random, 1, side.left - after_);
            uint256 actorIndex = (side.seed + i) % ACTORS;
            Leg memory leg = _restingOrderOf(actorIndex, side, fill);
            if (leg.quantity == 0) leg = _fresh(actorIndex, side.buy, fill, side.price, random);
            leg.fill = fill;
            leg.taker = side.taker < fill ? side.taker : fill;
            side.left -= fill;
            side.taker -= leg.taker;
            legs[i] = leg;
        }
    }

    /// @dev A resting order of the actor with enough quantity left; an order with quantity 0 if there is none.
    function _restingOrderOf(uint256 actorIndex, Side memory side, uint256 fill) private view returns (Leg memory none) {
        for (uint256 slot; slot < SLOTS; ++slot) {
            RestingOrder storage rest = _resting[actorIndex][slot];
            if (rest.leg.quantity < rest.filled + fill || rest.leg.buy != side.buy) continue;
            if (rest.leg.reduceOnly && !_closes(actorIndex, side.buy, fill)) continue;
            if (side.buy ? rest.leg.limit >= side.price : rest.leg.limit <= side.price) return rest.leg;
        }
    }

    function _fresh(uint256 actorIndex, bool buy, uint256 fill, uint256 price, uint256 random)
        internal
        returns (Leg memory leg)
    {
        bool isPartial = random % 3 == 0;
        leg.actor = actorIndex;
        leg.buy = buy;
        leg.fill = fill;
        leg.salt = ++_salts;
        leg.reduceOnly = random % 2 == 0 && _closes(actorIndex, buy, fill);
        leg.leverage = within(random >> 8, 1, listing.maxLeverage);
        leg.quantity = isPartial ? fill + within(random >> 16, 1, MOST_STEPS) : fill;
        leg.slot = isPartial ? within(random >> 32, 0, 2) : NO_SLOT;
        uint256 better = listing.steady ? 0 : within(random >> 40, 0, price / 50);
        leg.limit = random % 7 == 0 && !listing.steady ? 0 : buy ? price + better : price - better;
    }

    function _closes(uint256 actorIndex, bool buy, uint256 fill) private view returns (bool) {
        int256 size = positionOf(address(trader), actor(actorIndex), 0).size;
        return buy ? size < 0 && fill <= uint256(-size) : size > 0 && fill <= uint256(size);
    }
}
