// The websocket to the server, which reconnects by itself.

const NO_SUCH_GAME = 4404;  // code of a closed websocket
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
      if (event.code === NO_SUCH_GAME) return onProblem("There is no game at this link.");
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
