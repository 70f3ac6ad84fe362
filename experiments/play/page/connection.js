// The websocket to the server, which reconnects by itself.

const FATAL = { 4404: "There is no game at this link.", 4403: "This page cannot join the game." };
const MIN_WAIT = 300, MAX_WAIT = 3000;  // milliseconds

/** Connect; return a function that sends a message. onMessage(message); onProblem(text): why there
 * is no connection, "" once there is one. */
export function connect(address, onMessage, onProblem) {
  let socket, wait = MIN_WAIT;
  function open() {
    socket = new WebSocket(address);
    socket.onopen = () => { wait = MIN_WAIT; onProblem(""); };
    socket.onmessage = (event) => onMessage(JSON.parse(event.data));
    socket.onclose = (event) => {
      if (event.code in FATAL) return onProblem(FATAL[event.code]);
      onProblem("Connection lost. Reconnecting…");
      setTimeout(open, wait);
      wait = Math.min(2 * wait, MAX_WAIT);
    };
  }
  open();
  return (message) => {
    if (socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify(message));
  };
}
