// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {ISettlementErrors} from "../interfaces/ISettlementErrors.sol";
import {ACTION_LIFETIME, CANCEL_GRACE} from "../types/Durations.sol";
import {SaltState} from "../types/Order.sol";
import {RecordBody, RecordHead} from "../types/OrderRecord.sol";
import {Floors, TraderState, Word} from "../types/TraderState.sol";

/**
 * @title Fill and cancel state of orders
 * @notice On chain an order is identified by maker and salt. 64 salts share one word, 3 bits each, so sequential salts need a
 * fresh slot once per 64 orders. The bits above the states hold the time of a cancel request.
 *
 *   0 unused · 1 partly filled · 2 dead · 4, 5 cancel requested while unused or partly filled, time in the word
 *                                         6, 7 the same, time in a slot of its own
 *
 * contracts/README.md has the state diagram. A request uses the word's time field if no earlier request of the word is within
 * CANCEL_GRACE + ACTION_LIFETIME; it then writes one slot. Otherwise the request stores its time in a slot of its own, so that no
 * request restarts the clock of another.
 *
 * A partly filled order occupies one of its maker's partial slots, at an index that the operator chooses:
 * `salt << 112 | filled << 64 | batch`. Reusing a slot marks the salt that it held as dead in the same part, so that the filled
 * steps of a live order are never lost.
 */
library SaltLib {
    uint256 internal constant SALT_END = 1 << 53;
    /// @dev The index that means "no partial slot".
    uint256 internal constant NO_SLOT = 1023;

    uint256 private constant PARTLY = 1;
    uint256 private constant DEAD = 2;
    uint256 private constant REQUESTED = 4;
    /// @dev Set together with `REQUESTED`.
    uint256 private constant OWN_TIME = 2;
    uint256 private constant STATE = 7;

    uint256 private constant TIME_SHIFT = 192;
    uint256 private constant STATES = (1 << TIME_SHIFT) - 1;
    /// @dev The lowest bit of every state.
    uint256 private constant LOWEST = STATES / STATE;

    // ------------------------------------------------------------------ filling

    /// @notice Subtracts the fill from the order's remaining quantity.
    /// @return dead True if the salt can never fill again.
    function consume(TraderState storage state, RecordHead head, RecordBody body, uint256 batchId, uint256 asOf)
        internal
        returns (bool dead)
    {
        Word storage place = state.saltWords[wordKey(head.maker(), body.salt())];
        uint256 word = place.bits;
        uint256 shift = _shift(body.salt());
        uint256 before = (word >> shift) & STATE;
        // Fast path: an unused salt that fills completely.
        if (before | (head.quantity() ^ head.fill()) == 0) {
            place.bits = word | (DEAD << shift);
            return true;
        }
        (word, dead) = _consumeShare(state, head, body, word, batchId, asOf);
        place.bits = word;
    }

    /// @dev Slow path of `consume`: a partial fill, or a later fill. Returns the updated word of the salt.
    function _consumeShare(
        TraderState storage state,
        RecordHead head,
        RecordBody body,
        uint256 word,
        uint256 batchId,
        uint256 asOf
    ) private returns (uint256, bool dead) {
        (address maker, uint256 salt, uint256 fill) = (head.maker(), body.salt(), head.fill());
        uint256 shift = _shift(salt);
        uint256 before = (word >> shift) & STATE;
        if (before == DEAD) revert ISettlementErrors.OrderDead(maker, salt);
        if (before & REQUESTED != 0) _requireUnbound(state, maker, salt, word, asOf);

        uint256 filled = before & PARTLY != 0 ? _filled(state, maker, body, batchId) : 0;
        uint256 remaining = head.quantity() > filled ? head.quantity() - filled : 0;
        if (fill > remaining) revert ISettlementErrors.Overfill(maker, salt, remaining, fill);

        // A market order without a slot is dead after this part: it cannot fill in a later batch.
        dead = fill == remaining || (body.price() == 0 && body.slot() == NO_SLOT);
        if (!dead) {
            if (before & PARTLY == 0) word = _claimSlot(state, maker, body, word);
            state.partialSlots[slotKey(maker, body.slot())] = (salt << 112) | ((filled + fill) << 64) | batchId;
        }
        return (_withState(word, shift, dead ? DEAD : before | PARTLY), dead);
    }

    /// @notice Reverts if the order is dead or a cancel applies to it as of `asOf`. Does not check the remaining quantity.
    function requireAlive(TraderState storage state, address maker, uint256 salt, uint256 asOf) internal view {
        uint256 word = state.saltWords[wordKey(maker, salt)].bits;
        uint256 current = (word >> _shift(salt)) & STATE;
        if (current == DEAD) revert ISettlementErrors.OrderDead(maker, salt);
        if (current & REQUESTED != 0) _requireUnbound(state, maker, salt, word, asOf);
        requireAboveFloor(state, maker, salt, asOf);
    }

    /// @dev Steps filled so far of a partly filled order.
    function _filled(TraderState storage state, address maker, RecordBody body, uint256 batchId)
        private
        view
        returns (uint256)
    {
        uint256 salt = body.salt();
        if (body.slot() == NO_SLOT) revert ISettlementErrors.PartialSlotMissing(maker, salt);
        (uint256 held, uint256 filled, uint256 lastBatch) = readSlot(state, maker, body.slot());
        if (filled == 0 || held != salt) revert ISettlementErrors.PartialSlotMismatch(maker, salt, body.slot());
        if (body.price() == 0 && lastBatch != batchId) {
            revert ISettlementErrors.MarketOrderStale(maker, salt, lastBatch, batchId);
        }
        return filled;
    }

    /// @dev Marks the order that the slot held as dead. Its state may be in `word`, which the caller writes.
    function _claimSlot(TraderState storage state, address maker, RecordBody body, uint256 word)
        private
        returns (uint256)
    {
        uint256 salt = body.salt();
        if (body.slot() == NO_SLOT) revert ISettlementErrors.PartialSlotMissing(maker, salt);
        (uint256 held, uint256 filled,) = readSlot(state, maker, body.slot());
        if (filled == 0) return word;
        uint256 heldKey = wordKey(maker, held);
        if (heldKey == wordKey(maker, salt)) return _withState(word, _shift(held), DEAD);
        Word storage place = state.saltWords[heldKey];
        uint256 heldWord = place.bits;
        uint256 deadWord = _withState(heldWord, _shift(held), DEAD);
        if (heldWord != deadWord) place.bits = deadWord;
        return word;
    }

    /// @dev Reverts if the cancel request of the order applies to a batch as of `asOf`.
    function _requireUnbound(TraderState storage state, address maker, uint256 salt, uint256 word, uint256 asOf)
        private
        view
    {
        bool own = (word >> _shift(salt)) & OWN_TIME != 0;
        uint256 requestedAt = own ? state.cancelRequests[requestKey(maker, salt)] : word >> TIME_SHIFT;
        if (asOf > requestedAt + CANCEL_GRACE) revert ISettlementErrors.OrderCancelled(maker, salt, requestedAt, asOf);
    }

    // ------------------------------------------------------------------ cancelling

    /// @notice Requests the cancel of one salt at `requestedAt` (milliseconds). No effect on a salt that is dead or requested.
    function requestCancel(TraderState storage state, address maker, uint256 salt, uint256 requestedAt) internal {
        Word storage place = state.saltWords[wordKey(maker, salt)];
        uint256 word = place.bits;
        uint256 shift = _shift(salt);
        // Dead or requested: every state above PARTLY.
        if ((word >> shift) & STATE > PARTLY) return;

        uint256 standing = word >> TIME_SHIFT;
        uint256 next = REQUESTED;
        unchecked { // U1
            if (requestedAt > standing + CANCEL_GRACE + ACTION_LIFETIME) {
                word = _endRequests(word) | (requestedAt << TIME_SHIFT);
            } else if (requestedAt != standing) {
                state.cancelRequests[requestKey(maker, salt)] = requestedAt;
                next |= OWN_TIME;
            }
        }
        place.bits = word | (next << shift);
    }

    /// @dev Turns every state that uses the word's time field into dead, and frees the field: the requests apply to every batch
    /// that can still settle.
    function _endRequests(uint256 word) private pure returns (uint256) {
        uint256 ownTime = (word & (LOWEST * OWN_TIME)) << 1;
        uint256 requested = word & (LOWEST * REQUESTED) & ~ownTime;
        // States 4 and 5 become 2.
        return (word & STATES & ~(requested | (requested >> 2))) | (requested >> 1);
    }

    /// @notice Raises the floor below which salts are cancelled. A floor that was requested more than CANCEL_GRACE +
    /// ACTION_LIFETIME ago has settled: it applies to every batch that can still settle.
    /// @return raised False if `floor` is not above the requested floor.
    function requestFloor(TraderState storage state, address maker, uint256 floor, uint256 requestedAt)
        internal
        returns (bool raised)
    {
        Floors memory standing = state.floors[maker];
        if (floor <= standing.requested) return false;
        if (requestedAt > uint256(standing.requestedAt) + CANCEL_GRACE + ACTION_LIFETIME) {
            standing.settled = standing.requested;
        }
        // Floors are < 2^54 and times in milliseconds < 2^48.
        standing.requested = uint56(floor);
        standing.requestedAt = uint48(requestedAt);
        state.floors[maker] = standing;
        return true;
    }

    /// @notice Reverts if the salt is below its maker's floor. Call only if the position has `FLOORS_BIT`.
    function requireAboveFloor(TraderState storage state, address maker, uint256 salt, uint256 asOf) internal view {
        Floors memory floor = state.floors[maker];
        uint256 binding = asOf > uint256(floor.requestedAt) + CANCEL_GRACE ? floor.requested : floor.settled;
        if (salt < binding) revert ISettlementErrors.OrderCancelled(maker, salt, floor.requestedAt, asOf);
    }

    // ------------------------------------------------------------------ keys and slots

    function stateOf(TraderState storage state, address maker, uint256 salt) internal view returns (SaltState) {
        uint256 current = (state.saltWords[wordKey(maker, salt)].bits >> _shift(salt)) & STATE;
        return current & REQUESTED != 0 ? SaltState.CancelRequested : SaltState(current);
    }

    function readSlot(TraderState storage state, address maker, uint256 index)
        internal
        view
        returns (uint256 salt, uint256 filled, uint256 batchId)
    {
        uint256 slot = state.partialSlots[slotKey(maker, index)];
        return (slot >> 112, (slot >> 64) & type(uint48).max, slot & type(uint64).max);
    }

    function wordKey(address maker, uint256 salt) internal pure returns (uint256 key) {
        assembly ("memory-safe") {
            key := or(shl(96, maker), shr(6, salt))
        }
    }

    function slotKey(address maker, uint256 index) internal pure returns (uint256) {
        return (uint256(uint160(maker)) << 96) | index;
    }

    function requestKey(address maker, uint256 salt) internal pure returns (uint256) {
        return (uint256(uint160(maker)) << 96) | salt;
    }

    function _shift(uint256 salt) private pure returns (uint256) {
        unchecked { // U20
            return 3 * (salt & 63);
        }
    }

    function _withState(uint256 word, uint256 shift, uint256 next) private pure returns (uint256) {
        return (word & ~(STATE << shift)) | (next << shift);
    }
}
